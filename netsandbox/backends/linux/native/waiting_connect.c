#include "waiting_connect.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "trap_pool.h"

#define SOON 5000000L   /* nanoseconds after which another thread receives */
#define LATER 50000000L /* nanoseconds between looks at a caller that waits */
#define MAX_SLOTS (MAX_THREADS + 2) /* the pool's first thread and the process's own are not counted there */
#define RESTART 512     /* ERESTARTSYS: the kernel interrupts the call, or makes it again after the handler */

static sigset_t tick;

/* One thread sends the ticks that interrupt a connect that waits. Timers would be counted with the user's pending signals
 * (RLIMIT_SIGPENDING), so any session could use them up; a signal to a thread is sent in any case. It is blocked outside
 * of a connect. A tick that comes before the connect begins is followed by another. */
static struct {
    pthread_t thread;
    _Atomic long period; /* nanoseconds between its ticks, SOON or LATER; 0: it needs none */
} slots[MAX_SLOTS];
static atomic_int slot_count;
static atomic_int sleeps; /* a futex: 1 while the ticker must be woken for a thread that begins to want ticks */

static void set_ticks(long period)
{
    static _Thread_local int number = -1;

    if (number < 0) {
        number = atomic_fetch_add(&slot_count, 1);
        if (number >= MAX_SLOTS)
            _exit(1); /* a connect could keep all others waiting */
        slots[number].thread = pthread_self();
    }
    atomic_store(&slots[number].period, period);
    if (period && atomic_exchange(&sleeps, 0))
        syscall(SYS_futex, &sleeps, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Of the threads that want ticks, the shortest period; 0: none does. */
static long shortest_period(void)
{
    long shortest = 0;

    for (int number = 0; number < atomic_load(&slot_count); number++) {
        long period = atomic_load(&slots[number].period);

        if (period && (shortest == 0 || period < shortest))
            shortest = period;
    }
    return shortest;
}

static int64_t now(void)
{
    struct timespec clock;

    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (int64_t)clock.tv_sec * 1000000000 + clock.tv_nsec;
}

/* Whether those who want ticks soon have waited for one. A thread that is between two connects wants none for a moment, so
 * whoever begins ends the sleep: a sleep without a limit would never end for those who want them later. */
static int sleep_for_a_period(void)
{
    const struct timespec soon = { 0, SOON };
    const struct timespec later = { 0, LATER };
    long period;

    if (shortest_period() == SOON) {
        nanosleep(&soon, NULL);
        return 1;
    }
    atomic_store(&sleeps, 1);
    period = shortest_period();
    if (period != SOON)
        syscall(SYS_futex, &sleeps, FUTEX_WAIT_PRIVATE, 1, period ? &later : NULL, NULL, 0);
    atomic_store(&sleeps, 0);
    return 0;
}

static void *send_ticks(void *unused)
{
    for (int64_t last = now();;) {
        int soon_is_due = sleep_for_a_period();
        int later_is_due = now() - last >= LATER; /* by the clock, however often the sleep was ended */

        if (later_is_due)
            last = now();
        for (int number = 0; number < atomic_load(&slot_count); number++) {
            long period = atomic_load(&slots[number].period);

            if ((period == SOON && soon_is_due) || (period == LATER && later_is_due))
                pthread_kill(slots[number].thread, SIGUSR1);
        }
    }
    return unused;
}

struct wanted {
    const struct seccomp_notif *call;
    int copy;
    const struct sockaddr *address;
    socklen_t length;
};

static void begin_ticks(long period)
{
    set_ticks(period);
    pthread_sigmask(SIG_UNBLOCK, &tick, NULL);
}

static void end_ticks(void)
{
    pthread_sigmask(SIG_BLOCK, &tick, NULL);
    set_ticks(0);
}

/* 0, or an errno: EINTR after a tick. */
static int connect_for_a_tick(const struct wanted *wanted, long period)
{
    int error;

    begin_ticks(period);
    error = connect(wanted->copy, wanted->address, wanted->length) < 0 ? errno : 0;
    end_ticks();
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
    for (;;) {
        int waits;

        waits = signal_waits((pid_t)wanted->call->pid);
        if (!is_waiting(wanted->call)) /* then it was another process's */
            return EINTR;
        if (waits + seen >= 2)
            return most > 0 ? EINTR : RESTART;
        seen = waits;
        if (most > 0 && now() - began >= most)
            return wanted->address->sa_family == AF_UNIX ? EAGAIN : EINPROGRESS;
        error = connect_for_a_tick(wanted, LATER);
        if (error != EINTR)
            return error;
    }
}

int connect_waiting(const struct seccomp_notif *call, int copy, const struct sockaddr *address, socklen_t length)
{
    const struct wanted wanted = { call, copy, address, length };
    int error;

    error = connect_for_a_tick(&wanted, SOON);
    if (error != EINTR)
        return error;
    return hand_over() ? wait_for(&wanted) : EAGAIN;
}

int connect_briefly(int copy, const struct sockaddr *address, socklen_t length, int milliseconds)
{
    const struct wanted wanted = { NULL, copy, address, length };
    int64_t until = now() + (int64_t)milliseconds * 1000000;
    int error;

    while ((error = connect_for_a_tick(&wanted, SOON)) == EINTR) {
        if (!hand_over())
            return EAGAIN;
        if (now() >= until)
            return ETIMEDOUT;
    }
    return error;
}

void close_copy(int copy)
{
    begin_ticks(SOON);
    close(copy);
    end_ticks();
}

static void nothing(int number)
{
    (void)number;
}

void waiting_begin(void)
{
    struct sigaction action = { .sa_handler = nothing };
    pthread_t ticker;

    sigemptyset(&tick);
    sigaddset(&tick, SIGUSR1);
    if (sigaction(SIGUSR1, &action, NULL) < 0 || pthread_sigmask(SIG_BLOCK, &tick, NULL) != 0
        || pthread_create(&ticker, NULL, send_ticks, NULL) != 0)
        _exit(1);
}
