/* Calls that are being judged while something else happens to the caller: judged kill|interrupt|nested|crowd OUTSIDE.
 *
 * kill: children that bind all the time are killed at any moment. interrupt: binds and listens under a storm of signals.
 * nested: filters of the program's own stand before ours. crowd: without a descriptor left, and from many threads.
 * Prints one line of results; the last bind of each is one that must work. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 300
#define BINDS 1000

static int base, outside;
static volatile int alarms;

static int bind_at(int port, int listening)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, failed, kept;

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    do
        failed = bind(fd, (void *)&name, sizeof name);
    while (failed && errno == EINTR);
    if (!failed && listening)
        while ((failed = listen(fd, 1)) != 0 && errno == EINTR)
            continue;
    kept = errno;
    close(fd);
    errno = kept;
    return failed ? kept : 0;
}

static const char *spelt(int number)
{
    return number ? strerrorname_np(number) : "ok";
}

static void kill_callers(void)
{
    int killed = 0;

    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();

        if (child == 0)
            for (int turn = 0;; turn++)
                bind_at(turn % 2 ? outside : base + turn % 8, turn % 3 == 0);
        usleep((unsigned)(i * 37 % 3000));
        kill(child, SIGKILL);
        killed += waitpid(child, NULL, 0) == child;
    }
    printf("%d ", killed);
}

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void interrupt_calls(void)
{
    struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = on_alarm }; /* without SA_RESTART */
    int good = 0, refused = 0;

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < BINDS; i++) {
        good += bind_at(base + i % 50, 1) == 0;
        refused += bind_at(outside, 0) == EACCES;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d %d %d ", good, refused, alarms > 100);
}

static long filter(unsigned action)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bind, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { 4, steps };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void nest_filters(void)
{
    static const unsigned actions[] = { SECCOMP_RET_ALLOW, SECCOMP_RET_LOG, SECCOMP_RET_TRACE, SECCOMP_RET_USER_NOTIF };

    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (fork() == 0) {
            long installed = filter(actions[i]);
            printf("%s/%s ", installed == 0 ? "nested" : "not", spelt(bind_at(outside, 1)));
            fflush(stdout);
            _exit(0);
        }
        wait(NULL);
    }
}

static void *bind_often(void *argument)
{
    long good = 0;

    for (int i = 0; i < 50; i++)
        good += bind_at(base + 10 + (int)(long)argument, 1) == 0;
    return (void *)good;
}

static void crowd(void)
{
    struct rlimit few = { 8, 8 };
    pthread_t threads[32];
    long good = 0;

    for (long i = 0; i < 32; i++)
        pthread_create(&threads[i], NULL, bind_often, (void *)i);
    for (int i = 0; i < 32; i++) {
        void *one;
        pthread_join(threads[i], &one);
        good += (long)one;
    }
    setrlimit(RLIMIT_NOFILE, &few);
    printf("%ld %s ", good, spelt(bind_at(outside, 1)));
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    base = atoi(getenv("LISTENING_BASE_PORT"));
    outside = atoi(words[2]);
    if (strcmp(words[1], "kill") == 0)
        kill_callers();
    if (strcmp(words[1], "interrupt") == 0)
        interrupt_calls();
    if (strcmp(words[1], "nested") == 0)
        nest_filters();
    if (strcmp(words[1], "crowd") == 0)
        crowd();
    fflush(stdout);
    printf("%s %s\n", spelt(bind_at(base + 9, 1)), spelt(bind_at(outside, 1)));
    return 0;
}
