#include "waiting_connect.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "trap_pool.h"

#define SOON 5000000L   /* nanoseconds after which another thread receives */
#define LATER 50000000L /* nanoseconds between looks at a caller that waits */
#define RESTART 512     /* ERESTARTSYS: the kernel interrupts the call, or makes it again after the handler */

static sigset_t tick;

/* A timer of this thread interrupts a connect that waits. Its signal is blocked at other times: a signal that is pending
 * also stops the timer, so an idle thread sleeps, and a connect that does not wait needs no call for the timer. */
static void set_ticks(long nanoseconds)
{
    static _Thread_local int has_timer;
    static _Thread_local int timer;
    static _Thread_local long set;
    struct itimerspec when = { .it_interval.tv_nsec = nanoseconds, .it_value.tv_nsec = nanoseconds };

    if (set == nanoseconds)
        return;
    if (!has_timer) {
        union {
            struct {
                union sigval value;
                int number;
                int notify;
                int thread;
            } event;
            char space[64];
        } kernel; /* struct sigevent, whose thread has no portable name */

        memset(&kernel, 0, sizeof kernel);
        kernel.event.number = SIGUSR1;
        kernel.event.notify = 4; /* SIGEV_THREAD_ID */
        kernel.event.thread = (int)syscall(SYS_gettid);
        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &kernel, &timer) < 0)
            _exit(1); /* a connect could keep all others waiting */
        has_timer = 1;
    }
    if (syscall(SYS_timer_settime, timer, 0, &when, NULL) < 0)
        _exit(1);
    set = nanoseconds;
}

static int64_t now(void)
{
    struct timespec clock;

    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (int64_t)clock.tv_sec * 1000000000 + clock.tv_nsec;
}

struct wanted {
    const struct seccomp_notif *call;
    int copy;
    const struct sockaddr *address;
    socklen_t length;
};

/* 0, or an errno: EINTR after a tick. */
static int connect_for_a_tick(const struct wanted *wanted)
{
    int error;

    pthread_sigmask(SIG_UNBLOCK, &tick, NULL);
    error = connect(wanted->copy, wanted->address, wanted->length) < 0 ? errno : 0;
    pthread_sigmask(SIG_BLOCK, &tick, NULL);
    return error;
}

static int wait_for(const struct wanted *wanted)
{
    struct timeval limit = { 0, 0 };
    socklen_t size = sizeof limit;
    int64_t began = now();
    int64_t most;
    int seen = 0;
    int error;

    getsockopt(wanted->copy, SOL_SOCKET, SO_SNDTIMEO, &limit, &size);
    most = (int64_t)limit.tv_sec * 1000000000 + (int64_t)limit.tv_usec * 1000;
    set_ticks(LATER);
    for (;;) {
        int waits;

        if (!is_waiting(wanted->call))
            return EINTR;
        waits = signal_waits((pid_t)wanted->call->pid);
        if (waits + seen >= 2)
            return most > 0 ? EINTR : RESTART;
        seen = waits;
        if (most > 0 && now() - began >= most)
            return wanted->address->sa_family == AF_UNIX ? EAGAIN : EINPROGRESS;
        error = connect_for_a_tick(wanted);
        if (error != EINTR)
            return error;
    }
}

int connect_waiting(const struct seccomp_notif *call, int copy, const struct sockaddr *address, socklen_t length)
{
    const struct wanted wanted = { call, copy, address, length };
    int error;

    set_ticks(SOON);
    error = connect_for_a_tick(&wanted);
    if (error != EINTR)
        return error;
    return hand_over() ? wait_for(&wanted) : EAGAIN;
}

int connect_briefly(int copy, const struct sockaddr *address, socklen_t length, int milliseconds)
{
    const struct wanted wanted = { NULL, copy, address, length };
    int64_t until = now() + (int64_t)milliseconds * 1000000;
    int error;

    set_ticks(SOON);
    while ((error = connect_for_a_tick(&wanted)) == EINTR) {
        if (!hand_over())
            return EAGAIN;
        if (now() >= until)
            return ETIMEDOUT;
    }
    return error;
}

void close_copy(int copy)
{
    set_ticks(SOON);
    pthread_sigmask(SIG_UNBLOCK, &tick, NULL);
    close(copy);
    pthread_sigmask(SIG_BLOCK, &tick, NULL);
}

static void nothing(int number)
{
    (void)number;
}

void waiting_begin(void)
{
    struct sigaction action = { .sa_handler = nothing };

    sigemptyset(&tick);
    sigaddset(&tick, SIGUSR1);
    if (sigaction(SIGUSR1, &action, NULL) < 0)
        _exit(1);
}
