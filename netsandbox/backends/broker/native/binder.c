#include "binder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "trap_pool.h"

#define SOON 5        /* milliseconds after which other calls go on */
#define PATIENCE 5000 /* milliseconds */

struct request {
    uint32_t mask;
    uint32_t length;
    union address address;
};

static int ends[2] = { -1, -1 }; /* the broker's, the binder's */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void binder_begin(void)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        fail("making the binder");
}

/* With at most one descriptor; -1 if none came. */
static ssize_t receive_with(int socket, void *data, size_t size, int *descriptor)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec vector = { data, size };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    ssize_t length;

    *descriptor = -1;
    do
        length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length > 0 && CMSG_FIRSTHDR(&message) != NULL && control.header.cmsg_type == SCM_RIGHTS
        && control.header.cmsg_len == CMSG_LEN(sizeof *descriptor))
        memcpy(descriptor, CMSG_DATA(&control.header), sizeof *descriptor);
    return length;
}

/* Another file may be moved to the name before it is opened. Then that one stands for the session's socket, in this session. */
static int make_here(const struct request *request, int cwd, int *shown)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL), .tv_nsec = MARK } };
    char path[sizeof request->address.local.sun_path + 1] = "";
    struct stat found;

    memcpy(path, request->address.local.sun_path, request->length - offsetof(struct sockaddr_un, sun_path));
    if (fchdir(cwd) < 0)
        return errno;
    umask((mode_t)request->mask);
    if (mknod(path, S_IFSOCK | 0777, 0) < 0) /* as bind does: less the mask */
        return errno == EEXIST ? EADDRINUSE : errno;
    if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    *shown = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (*shown < 0)
        return errno;
    return fstat(*shown, &found) == 0 && S_ISSOCK(found.st_mode) ? 0 : EACCES;
}

/* The broker asks every process to end, and waits for us too. What others send is not meant for us. */
static void on_end(int number, siginfo_t *from, void *unused)
{
    (void)number;
    (void)unused;
    if (from->si_pid == getppid())
        _exit(0);
}

static noreturn void serve_binds(void)
{
    const struct sigaction ending = { .sa_sigaction = on_end, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigset_t asked;

    sigemptyset(&asked);
    sigaddset(&asked, SIGTERM);
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NAME, "netsandbox-bind") < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0
        || sigaction(SIGTERM, &ending, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &asked, NULL) < 0 || dup2(ends[1], 0) < 0 || syscall(SYS_close_range, 1U, ~0U, 0U) < 0)
        _exit(1);
    for (;;) {
        struct request request;
        int cwd;
        int shown = -1;
        int32_t error;

        memset(&request, 0, sizeof request);
        if (receive_with(0, &request, sizeof request, &cwd) != (ssize_t)sizeof request || cwd < 0
            || request.length > sizeof request.address.local)
            _exit(1);
        error = make_here(&request, cwd, &shown);
        close(cwd);
        if (send_descriptors(0, &error, sizeof error, &shown, error ? 0 : 1) < 0)
            _exit(1);
        if (shown >= 0)
            close(shown);
    }
}

void fork_binder(void)
{
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0UL);

    if (pid < 0)
        fail("making the binder");
    if (pid == 0)
        serve_binds();
}

/* The command can stop the binder, as each process of the session. What it replies later would be taken for the reply to
 * another request, so one that is late is given up. */
static int replies(void)
{
    struct pollfd watched = { .fd = ends[0], .events = POLLIN };

    if (poll(&watched, 1, SOON) > 0 || (hand_over() && poll(&watched, 1, PATIENCE) > 0))
        return 1;
    close(ends[0]);
    ends[0] = -1;
    return 0;
}

int make_stand_in(int cwd, mode_t mask, const union address *address, socklen_t length, int *shown)
{
    struct request request = { .mask = mask, .length = length, .address = *address };
    int32_t error = EACCES;

    *shown = -1;
    if (pthread_mutex_trylock(&lock) != 0) {
        if (!hand_over())
            return EAGAIN;
        pthread_mutex_lock(&lock);
    }
    if (ends[0] < 0 || send_descriptors(ends[0], &request, sizeof request, &cwd, 1) < 0 || !replies()
        || receive_with(ends[0], &error, sizeof error, shown) != (ssize_t)sizeof error)
        error = EACCES;
    pthread_mutex_unlock(&lock);
    if (error == 0 && *shown < 0)
        error = EMFILE;
    if (error && *shown >= 0)
        close(*shown);
    return error;
}
