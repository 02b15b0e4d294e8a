#include "reports.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "trap_pool.h"
#include "traps.h"

#define SEEN 1024 /* a power of two */
#define MISSED 8
#define MOMENT 2 /* seconds by the clock's whole seconds: at least one has passed */

static uint32_t unreported;
static char missed[MISSED][PATH_MAX]; /* the last paths that were reported as not there */
static size_t missed_count;

int to_supervisor(struct iovec *parts, size_t count, int flags)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

    while (sendmsg(RELAY, &message, MSG_NOSIGNAL | flags) < 0) {
        if (flags & MSG_DONTWAIT && (errno == EAGAIN || errno == ENOBUFS))
            return 0;
        if (errno != EINTR)
            _exit(1); /* the supervisor is gone, so we end too */
    }
    return 1;
}

void pass_on(const struct seccomp_notif *call)
{
    char kind = 'T';
    struct seccomp_notif copy = *call;
    struct iovec parts[] = { { &kind, 1 }, { &copy, sizeof copy } };

    to_supervisor(parts, 2, 0);
}

/* A report at the first, second, fourth … time, and once the last one is a moment old, since a second command may try
 * what the first was refused: how many times it stands for, or 0. */
static uint32_t counted(const char *path, char does)
{
    static struct {
        uint64_t key;
        uint32_t times;
        uint32_t reported;
        time_t last;
    } seen[SEEN];
    uint64_t key = 14695981039346656037ULL ^ (unsigned char)does; /* FNV-1a */
    struct timespec now;
    uint32_t count;
    size_t slot;

    for (; *path != '\0'; path++)
        key = (key ^ (unsigned char)*path) * 1099511628211ULL;
    slot = (key ^ key >> 32) & (SEEN - 1);
    if (seen[slot].key != key) {
        seen[slot].key = key;
        seen[slot].times = 0;
        seen[slot].reported = 0;
    }
    if (seen[slot].times == UINT32_MAX)
        return 0;
    seen[slot].times++;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (seen[slot].times & (seen[slot].times - 1) && now.tv_sec - seen[slot].last < MOMENT)
        return 0;
    count = seen[slot].times - seen[slot].reported;
    seen[slot].reported = seen[slot].times;
    seen[slot].last = now.tv_sec;
    return count;
}

void report(const struct seccomp_notif *call, char why, char does, const char *path)
{
    char exe[PATH_MAX];
    char kind = 'F';
    size_t size = strlen(path) + 1;
    struct refusal refusal = { .why = (uint8_t)why,
                               .does = (uint8_t)does,
                               .call = (uint16_t)call->data.nr,
                               .pid = (int32_t)call->pid,
                               .times = counted(path, does) };
    struct iovec parts[4] = { { &kind, 1 }, { &refusal, sizeof refusal }, { exe, 1 }, { (void *)(uintptr_t)path, size } };

    if (refusal.times == 0)
        return;
    parts[2].iov_len = caller_link((pid_t)call->pid, "exe", exe, sizeof exe) + 1;
    if (!is_waiting(call))
        return; /* the caller is gone, and what was read may be of another process */
    if (!to_supervisor(parts, 4, why == 'o' ? 0 : MSG_DONTWAIT))
        unreported++;
    else if (why == 'h')
        memcpy(missed[missed_count++ % MISSED], path, size);
}

int pass_question(const struct seccomp_notif *call, char why, char does, const char *path)
{
    char exe[PATH_MAX];
    char kind = 'A';
    struct seccomp_notif copy = *call;
    struct refusal refusal = { .why = (uint8_t)why, .does = (uint8_t)does, .call = (uint16_t)call->data.nr,
                               .pid = (int32_t)call->pid, .times = 1 };
    size_t length = caller_link((pid_t)call->pid, "exe", exe, sizeof exe);
    struct iovec parts[5] = { { &kind, 1 }, { &copy, sizeof copy }, { &refusal, sizeof refusal }, { exe, length + 1 },
                              { (void *)(uintptr_t)path, strlen(path) + 1 } };

    return is_waiting(call) && to_supervisor(parts, 5, 0);
}

void report_made(const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    for (size_t number = 0; missed_count > 0 && number < MISSED; number++) {
        char *each = missed[number];
        char kind = 'M';
        struct iovec parts[] = { { &kind, 1 }, { each, strlen(each) + 1 } };

        if (each[0] != '\0' && strncmp(each, path, length) == 0 && (each[length] == '/' || each[length] == '\0')) {
            to_supervisor(parts, 2, MSG_DONTWAIT);
            each[0] = '\0';
        }
    }
}

void count_unreported(void)
{
    unreported++;
}

void report_unreported(void)
{
    char kind = 'U';
    uint32_t count = unreported;
    struct iovec parts[] = { { &kind, 1 }, { &count, sizeof count } };

    if (count == 0)
        return;
    unreported = 0;
    to_supervisor(parts, 2, 0);
}
