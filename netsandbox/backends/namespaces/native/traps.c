#include "traps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call_path.h"
#include "channel.h"
#include "refused.h"
#include "reports.h"
#include "sockets.h"

#define MAX_CALL 512 /* every number of file_calls.py is below */
#define MAX_ROWS 128
#define MAX_THREADS 300 /* one receives, the others wait for a connect or for their turn */
#define STACK 262144

/* Linux 6.6: the caller's processor goes on with us at once, and back. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

static struct path_row rows[MAX_ROWS];
static uint8_t first_row[MAX_CALL]; /* 1 + index in rows; rows of one call follow one another */
static size_t row_count;
int trap_listener;

static void receive_rows(void)
{
    ssize_t length;

    do
        length = recv(RELAY, rows, sizeof rows, MSG_TRUNC);
    while (length < 0 && errno == EINTR);
    if (length <= 0 || (size_t)length > sizeof rows || (size_t)length % sizeof *rows != 0)
        _exit(1);
    row_count = (size_t)length / sizeof *rows;
    for (size_t number = row_count; number-- > 0;) {
        if (rows[number].call >= MAX_CALL)
            _exit(1);
        first_row[rows[number].call] = (uint8_t)(number + 1);
    }
}

int is_waiting(const struct seccomp_notif *call)
{
    uint64_t id = call->id;

    return ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

void let_go_on(const struct seccomp_notif *call)
{
    struct seccomp_notif_resp response = { .id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

    if (ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0 && errno != ENOENT && errno != EINTR)
        _exit(1);
}

/* What the call does with the path: one of refusal.does, 'e' to make a file that may not exist, 'c' to open one that may
 * not exist, or 0 if it is not looked at. */
static char purpose(const struct seccomp_notif *call, const struct path_row *row, int *follow)
{
    uint64_t flags = row->flags == NO_ARGUMENT ? 0 : call->data.args[row->flags];

    *follow = row->follows;
    switch (row->use) {
    case USE_CHANGE:
        *follow = row->follows && !(flags & AT_SYMLINK_NOFOLLOW);
        return 'w';
    case USE_NAME:
    case USE_REMOVE:
    case USE_FOLDER:
    case USE_EXEC:
        return (char)row->use;
    case USE_CREAT:
        flags = O_CREAT | O_WRONLY | O_TRUNC;
        break;
    case USE_HOW:
        if (caller_memory((pid_t)call->pid, flags, &flags, sizeof flags) != (ssize_t)sizeof flags)
            return 0;
        break;
    default:
        flags = (uint32_t)flags;
        break;
    }
    if (flags & O_PATH)
        return 0;
    *follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    if (flags & O_CREAT)
        return flags & O_EXCL ? 'e' : 'c';
    return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC ? 'w' : 'r';
}

static int is_under(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Non-zero if the call is held for the supervisor. */
static int look(const struct seccomp_notif *call, const struct path_row *row)
{
    char path[PATH_MAX];
    int follow;
    char does = purpose(call, row, &follow);
    char why;

    if (does == 0 || full_path(call, row, path) == 0 || is_under(path, "/proc") || is_under(path, "/dev"))
        return 0;
    if (!open_root(call)) {
        count_unreported();
        return 0;
    }
    if (does == 'r' || does == 'x') {
        why = does == 'x' ? refused_execution(path) : refused_read(path);
    } else {
        why = refused_write(path, &does, follow);
        if (!why && row->tells & TELLS && is_change(path, does))
            why = 'o';
    }
    if ((why == 'h' || why == 'r') && row->tells & ASKS)
        return pass_question(call, why, does == 'e' ? 'n' : does, path);
    if (why)
        report(call, why, does == 'e' ? 'n' : does, path);
    if ((!why || why == 'o') && (does == 'n' || does == 'd' || does == 'e') && is_change(path, does))
        report_made(path);
    return 0;
}

static void receive(struct seccomp_notif *call)
{
    struct pollfd watched = { .fd = trap_listener, .events = POLLIN };

    for (;;) {
        memset(call, 0, sizeof *call);
        if (ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_RECV, call) == 0)
            return;
        if (errno != EINTR && errno != ENOENT)
            _exit(1);
        if (poll(&watched, 1, 0) > 0 && !(watched.revents & POLLIN))
            for (;;) /* the last process is gone; the supervisor ends us after it has read our reports */
                pause();
    }
}

static int receive_listener(int source)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    char kind;
    struct iovec vector = { &kind, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    struct cmsghdr *header;
    ssize_t length;
    int found;

    do
        length = recvmsg(source, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    header = length == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof found))
        _exit(1); /* the session was not set up */
    memcpy(&found, CMSG_DATA(header), sizeof found);
    close(source);
    return found;
}

/* One thread receives at a time, so only it uses what is static here. A call that may wait is finished by the thread
 * that received it, after another one has taken its place. */
static pthread_mutex_t receiving = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int receives;
static atomic_int spare; /* threads that wait for their turn */
static size_t threads;

static void *serve_calls(void *unused);

int hand_over(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int failed;

    if (!receives)
        return 1;
    if (atomic_load(&spare) == 0) {
        if (threads == MAX_THREADS || pthread_attr_init(&attributes) != 0)
            return 0;
        atomic_fetch_add(&spare, 1);
        failed = pthread_attr_setstacksize(&attributes, STACK) != 0
            || pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) != 0
            || pthread_create(&thread, &attributes, serve_calls, NULL) != 0;
        pthread_attr_destroy(&attributes);
        if (failed) {
            atomic_fetch_sub(&spare, 1);
            return 0;
        }
        threads++;
    }
    receives = 0;
    pthread_mutex_unlock(&receiving);
    return 1;
}

static void serve_call(struct seccomp_notif *call)
{
    size_t row = call->data.nr >= 0 && call->data.nr < MAX_CALL ? first_row[call->data.nr] : 0;
    int is_held = 0;

    if (call->data.nr == SYS_connect || call->data.nr == SYS_bind) {
        if (!serve_socket(call, row != 0))
            pass_on(call);
        return;
    }
    if (row == 0) {
        if (call->data.nr != SYS_listen || !serve_listen(call, first_row[SYS_bind] != 0))
            pass_on(call);
        return;
    }
    for (row--; row < row_count && rows[row].call == call->data.nr; row++)
        is_held |= look(call, &rows[row]);
    report_unreported();
    if (!is_held)
        let_go_on(call);
}

static void *serve_calls(void *unused)
{
    struct seccomp_notif call;

    for (;;) {
        if (!receives) {
            pthread_mutex_lock(&receiving);
            atomic_fetch_sub(&spare, 1);
            receives = 1;
        }
        receive(&call);
        serve_call(&call);
        if (!receives)
            atomic_fetch_add(&spare, 1);
    }
    return unused;
}

static void take_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files); /* a lower limit only means fewer bound sockets */
    }
}

void serve_traps(int source)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NAME, "netsandbox-trap") < 0)
        _exit(1);
    if (syscall(SYS_close_range, 0U, CHANNEL, 0U) < 0 || chdir("/") < 0)
        _exit(1);
    receive_rows();
    receive_hidden();
    trap_listener = receive_listener(source);
    ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* EINVAL before Linux 6.6 */
    take_descriptors();
    sockets_begin();
    atomic_fetch_add(&spare, 1);
    serve_calls(NULL);
    _exit(1);
}
