/* Counts what is allocated between the start of main and its end, by a malloc of its own. Arguments: a port, and before
 * it "elsewhere" where connections to other machines are to be tried too. */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char heap[1 << 22];
static size_t used;
static int counted;

void *malloc(size_t size)
{
    void *place = heap + used;

    used += (size + 31) & ~(size_t)15;
    counted++;
    return used <= sizeof heap ? place : NULL;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *old, size_t size)
{
    void *new = malloc(size);

    if (old != NULL && new != NULL)
        memmove(new, old, size);
    return new;
}

void free(void *place)
{
    (void)place;
}

static int go_elsewhere(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(443)}, seen;
    socklen_t length = sizeof seen;
    char data[64];
    int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
    int bad = 0;

    name.sin_addr.s_addr = htonl(0xc0000207); /* 192.0.2.7 */
    bad |= connect(tcp, (struct sockaddr *)&name, sizeof name);
    bad |= getpeername(tcp, (struct sockaddr *)&seen, &length) || seen.sin_port != name.sin_port;
    name.sin_port = htons(53);
    bad |= sendto(udp, "\x53\x53\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1", 19, 0, (struct sockaddr *)&name, sizeof name) < 0;
    bad |= recvfrom(udp, data, sizeof data, 0, (struct sockaddr *)&seen, &length) < 0 || seen.sin_port != name.sin_port;
    return bad;
}

int main(int count, char **arguments)
{
    static char *empty[] = {NULL};
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 1]))}, seen;
    socklen_t length = sizeof seen;
    int before = counted;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    int bad = 0;

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bad |= bind(server, (struct sockaddr *)&name, sizeof name) << 0;
    bad |= listen(server, 5);
    bad |= connect(client, (struct sockaddr *)&name, sizeof name);
    bad |= accept4(server, (struct sockaddr *)&seen, &length, SOCK_CLOEXEC) < 0;
    bad |= sendto(udp, "x", 1, 0, (struct sockaddr *)&name, sizeof name) < 0;
    bad |= getpeername(client, (struct sockaddr *)&seen, &length);
    if (count > 2)
        bad |= go_elsewhere();
    if (vfork() == 0) {
        execve("/bin/true", arguments, empty);
        _exit(1);
    }
    wait(NULL);
    bad |= counted - before;
    printf("allocated %d times, %s\n", counted - before, bad ? "bad" : "good");
    return bad != 0;
}
