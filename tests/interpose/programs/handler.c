/* Hooks in a signal handler that interrupts hooks, a few thousand times. Argument: a port with a listener. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static struct sockaddr_in name;
static volatile sig_atomic_t handled;

static void touch(void)
{
    struct sockaddr_in seen;
    socklen_t length = sizeof seen;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (connect(fd, (struct sockaddr *)&name, sizeof name) != 0 ||
        getpeername(fd, (struct sockaddr *)&seen, &length) != 0 || seen.sin_port != name.sin_port)
        _exit(3);
    close(fd);
}

static void on_alarm(int number)
{
    int saved = errno;

    (void)number;
    touch();
    handled++;
    errno = saved;
}

int main(int count, char **arguments)
{
    struct itimerval often = {{0, 100}, {0, 100}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

    name.sin_family = AF_INET;
    name.sin_port = htons(atoi(arguments[count - 1]));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int turn = 0; turn < 200000 && handled < 1000; turn++)
        touch();
    printf("%s\n", handled > 100 ? "handled" : "hardly ever interrupted");
    return 0;
}
