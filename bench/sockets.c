/* sockets PORT COUNT: socket(), connect() and close(), all three in the time taken, COUNT times. The one thread that connects
 * also accepts, outside of that time. Prints the nanoseconds of the middle one. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <unistd.h>

#include "loopback.h"

static int compare(const void *one, const void *other)
{
    long first = *(const long *)one;
    long second = *(const long *)other;

    return first < second ? -1 : first > second;
}

int main(int argc, char **argv)
{
    struct sockaddr_in here = place("127.0.0.1", argc == 3 ? atoi(argv[1]) : 0);
    int count = argc == 3 ? atoi(argv[2]) : 0;
    long *taken = calloc((size_t)count + 1, sizeof *taken);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (count < 1 || taken == NULL || bind(listener, (void *)&here, sizeof here) || listen(listener, 64))
        stop("listen");
    for (int each = 0; each < count; each++) {
        long began = now();
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (void *)&here, sizeof here))
            stop("connect");
        close(fd);
        taken[each] = now() - began;
        close(accept(listener, NULL, NULL));
    }
    qsort(taken, (size_t)count, sizeof *taken, compare);
    printf("%ld\n", taken[count / 2]);
    return 0;
}
