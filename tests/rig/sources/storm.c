/* The preloaded library where it is hardest to be: storm FORKS. Prints a line for each part that went well.
 *
 * A constructor that binds before main; hooks in a signal handler that interrupts hooks; hooks after every descriptor was
 * closed; errno as it was; FORKS children of four threads, each of which connects and reads, and not one hangs. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

static atomic_int over, handled, reached, failed;
static int early = -1, share;

static struct sockaddr_in at(int port)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) };

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
}

static int server(int port)
{
    struct sockaddr_in name = at(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (void *)&name, sizeof name) != 0 || listen(fd, 512) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int visit(int port)
{
    struct sockaddr_in name = at(port), peer;
    socklen_t size = sizeof peer;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char byte = 0;
    int good = fd >= 0 && connect(fd, (void *)&name, sizeof name) == 0 && read(fd, &byte, 1) == 1 && byte == '!' &&
               getpeername(fd, (void *)&peer, &size) == 0 && ntohs(peer.sin_port) == port;

    close(fd);
    return good;
}

__attribute__((constructor)) static void before_main(void)
{
    early = server(3100);
}

static void *serve(void *argument)
{
    int listener = *(int *)argument;

    while (!over) {
        int visitor = accept(listener, NULL, NULL);
        if (visitor >= 0 && write(visitor, "!", 1) < 0)
            perror("write");
        close(visitor);
    }
    return NULL;
}

static void on_alarm(int number)
{
    struct sockaddr_in name = at(3000), own;
    socklen_t size = sizeof own;
    int saved = errno, fd = socket(AF_INET, SOCK_DGRAM, 0);

    (void)number;
    if (connect(fd, (void *)&name, sizeof name) == 0 && getpeername(fd, (void *)&own, &size) == 0 &&
        ntohs(own.sin_port) == 3000)
        handled++;
    close(fd);
    errno = saved;
}

static void *fork_and_visit(void *argument)
{
    for (int i = 0; i < share; i++) {
        pid_t child = fork();
        int status = 1;

        if (child == 0)
            _exit(visit(3000) ? 0 : 1);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        if (status == 0)
            reached++;
        else
            failed++;
    }
    return argument;
}

static void interrupted(void)
{
    struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
    int good = 0;

    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 2000 || (handled < 20 && i < 2000000); i++) {
        struct sockaddr_in own;
        socklen_t size = sizeof own;
        good += getsockname(early, (void *)&own, &size) == 0 && ntohs(own.sin_port) == 3100;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    if (handled >= 20 && good >= 2000)
        puts("interrupted");
}

static void without_descriptors(void)
{
    pid_t child = fork();
    int status = 1;

    if (child == 0) {
        syscall(436 /* close_range */, 0, ~0U, 0);
        _exit(visit(3000) && server(3200) >= 0 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    if (status == 0)
        puts("closed");
}

static void errors(void)
{
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    int fd;

    errno = E2BIG;
    fd = server(3300);
    if (fd >= 0 && errno == E2BIG && getsockname(fd, (void *)&own, &size) == 0 && errno == E2BIG)
        puts("errno");
    if (bind(-1, (void *)&own, sizeof own) == -1 && errno == EBADF && bind(fd, (void *)&own, sizeof own) == -1 &&
        errno == EINVAL && bind(fd, (void *)8, sizeof own) == -1 && errno == EFAULT)
        puts("errors");
}

int main(int count, char **words)
{
    pthread_t threads[THREADS], helpers[2];
    int listener = server(3000);

    setvbuf(stdout, NULL, _IONBF, 0);
    if (count != 2 || listener < 0)
        return 2;
    if (early >= 0)
        puts("constructor");
    pthread_create(&helpers[0], NULL, serve, &listener);
    pthread_create(&helpers[1], NULL, serve, &listener);
    errors();
    interrupted();
    without_descriptors();
    share = atoi(words[1]) / THREADS;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, fork_and_visit, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("forks %d %d\n", reached, failed);
    return 0;
}
