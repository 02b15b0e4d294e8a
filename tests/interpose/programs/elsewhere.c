/* Eight threads connect to addresses of their own, check whom they speak with, and so do their children, while a signal
 * handler does the same. Argument: rounds. Nothing may be allocated meanwhile by connect and its like. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define MARK 77

static int rounds;
static volatile sig_atomic_t lost_in_handler;

static int reach(unsigned int number)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(1000 + number))}, seen;
    socklen_t length = sizeof seen;
    char data[4] = "data", back[4];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int good;

    name.sin_addr.s_addr = htonl(0xc6336400u + number); /* 198.51.100.x */
    errno = MARK;
    good = connect(fd, (struct sockaddr *)&name, sizeof name) == 0 && errno == MARK &&
           getpeername(fd, (struct sockaddr *)&seen, &length) == 0 && errno == MARK && length == sizeof seen &&
           memcmp(&seen, &name, sizeof name) == 0 && write(fd, data, sizeof data) == sizeof data &&
           recv(fd, back, sizeof back, MSG_WAITALL) == sizeof back && memcmp(data, back, sizeof data) == 0;
    close(fd);
    return good;
}

static void on_alarm(int number)
{
    int saved = errno;

    (void)number;
    lost_in_handler += !reach(200);
    errno = saved;
}

static void *storm(void *argument)
{
    unsigned int number = (unsigned int)(long)argument;
    long lost = 0;

    for (int turn = 0; turn < rounds; turn++) {
        int status = 0;
        pid_t child = fork();

        if (child == 0)
            _exit(reach(number + 100) ? 0 : 1);
        lost += !reach(number);
        while (waitpid(child, &status, 0) != child)
            continue;
        lost += status != 0;
    }
    return (void *)lost;
}

int main(int count, char **arguments)
{
    struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    pthread_t threads[THREADS];
    long lost = 0;

    rounds = atoi(arguments[count - 1]);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long one = 0; one < THREADS; one++)
        pthread_create(&threads[one], NULL, storm, (void *)(one + 1));
    for (int one = 0; one < THREADS; one++) {
        void *result;

        pthread_join(threads[one], &result);
        lost += (long)result;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("lost %ld\n", lost + lost_in_handler);
    return 0;
}
