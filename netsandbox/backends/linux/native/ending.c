#include "ending.h"

#include <signal.h>
#include <time.h>

#define GRACE 5000 /* milliseconds, as `netsandbox stop` gives the first command (session/supervisor.py) */
#define PASSED 1

static int64_t deadline; /* 0: nobody was asked yet */
static int has_ended;
static int last;

int64_t now(void)
{
    struct timespec clock;

    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (int64_t)clock.tv_sec * 1000 + clock.tv_nsec / 1000000;
}

void ask_to_end(void (*signal_all)(int number))
{
    if (deadline != 0)
        return;
    deadline = now() + GRACE;
    signal_all(SIGTERM);
    signal_all(SIGCONT);
}

void end_at_once(void)
{
    deadline = PASSED;
}

void command_ended(int status)
{
    has_ended = 1;
    last = status;
}

int has_command_ended(void)
{
    return has_ended;
}

int is_over(int none_left, int *status)
{
    *status = last;
    return has_ended && (none_left || now() >= deadline);
}

int until_over(int longest)
{
    int64_t left = deadline - now();

    if (!has_ended || (longest >= 0 && left > longest))
        return longest;
    return left > 0 ? (int)left : 0;
}
