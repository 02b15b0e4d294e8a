/* Attack 105: eight threads, each forks and connects, and every child connects too. Arguments: rounds, port. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8

static struct sockaddr_in name;
static int rounds;

static int reach(void)
{
    struct sockaddr_in seen;
    socklen_t length = sizeof seen;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int good = connect(fd, (struct sockaddr *)&name, sizeof name) == 0 &&
               getpeername(fd, (struct sockaddr *)&seen, &length) == 0 && seen.sin_port == name.sin_port;

    close(fd);
    return good;
}

static void *storm(void *unused)
{
    long lost = 0;

    (void)unused;
    for (int turn = 0; turn < rounds; turn++) {
        int status = 0;
        pid_t child = fork();

        if (child == 0)
            _exit(reach() ? 0 : 1);
        lost += !reach();
        if (waitpid(child, &status, 0) != child || status != 0)
            lost++;
    }
    return (void *)lost;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    long lost = 0;

    if (count < 3)
        return 2;
    rounds = atoi(arguments[1]);
    name.sin_family = AF_INET;
    name.sin_port = htons(atoi(arguments[2]));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int one = 0; one < THREADS; one++)
        pthread_create(&threads[one], NULL, storm, NULL);
    for (int one = 0; one < THREADS; one++) {
        void *result;

        pthread_join(threads[one], &result);
        lost += (long)result;
    }
    printf("lost %ld\n", lost);
    return 0;
}
