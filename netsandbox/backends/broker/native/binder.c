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

#include "bound_file.h"
#include "channel.h"
#include "trap_pool.h"

#define SOON 5        /* milliseconds after which other calls go on */
#define PATIENCE 5000 /* milliseconds */

struct bind_request {
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

static ssize_t receive_with(int socket, void *data, size_t size, int *descriptors, size_t count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec vector = { data, size };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    ssize_t length;

    for (size_t number = 0; number < count; number++)
        descriptors[number] = -1;
    do
        length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length > 0 && CMSG_FIRSTHDR(&message) != NULL && control.header.cmsg_type == SCM_RIGHTS)
        for (size_t number = 0; number < (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int); number++) {
            int passed;

            memcpy(&passed, CMSG_DATA(&control.header) + number * sizeof passed, sizeof passed);
            if (number < count)
                descriptors[number] = passed;
            else
                close(passed);
        }
    return length;
}

/* The time as files get it, at the beginning of a tick of its clock: what was made before has an earlier time. */
static void await_tick(struct timespec *now)
{
    const struct timespec moment = { .tv_nsec = 200000 };
    struct timespec first;

    clock_gettime(CLOCK_REALTIME_COARSE, &first);
    do {
        nanosleep(&moment, NULL);
        clock_gettime(CLOCK_REALTIME_COARSE, now);
    } while (now->tv_sec == first.tv_sec && now->tv_nsec == first.tv_nsec);
}

/* The file is the one that was made just now, and not another that was moved to its name: it is newer than the call, and
 * the kernel says that it is the socket's. Some file systems have no such time, some kernels do not say it, and some file
 * systems show another device than the kernel has; without either proof it is refused. */
static int is_new(int file, int socket, const struct timespec *before)
{
    struct bound_file bound;
    struct statx found;
    int is_known = find_bound_file(socket, &bound);

    if (statx(file, "", AT_EMPTY_PATH, STATX_BTIME | STATX_TYPE | STATX_INO, &found) < 0 || !S_ISSOCK(found.stx_mode))
        return 0;
    if (is_known && (uint32_t)found.stx_ino != bound.inode)
        return 0;
    if (!(found.stx_mask & STATX_BTIME))
        return is_known && bound.device == (found.stx_dev_major << 20 | found.stx_dev_minor);
    return found.stx_btime.tv_sec > before->tv_sec
        || (found.stx_btime.tv_sec == before->tv_sec && (long)found.stx_btime.tv_nsec >= before->tv_nsec);
}

/* Puts a stand-in in the place of the socket file at *path*. 0, or an errno. */
static int hide(const char *path, struct bound *into)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL), .tv_nsec = MARK } };
    struct stat found;

    if (unlink(path) < 0)
        return errno;
    if (mknod(path, S_IFSOCK | 0777, 0) < 0) /* as bind does: less the mask */
        return errno == EEXIST ? EADDRINUSE : errno;
    if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    into->shown = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (into->shown < 0)
        return errno;
    return fstat(into->shown, &found) == 0 && S_ISSOCK(found.st_mode) ? 0 : EACCES;
}

static int bind_here(const struct bind_request *request, int socket, int cwd, struct bound *into)
{
    char path[sizeof request->address.local.sun_path + 1] = "";
    struct timespec before;

    if (fchdir(cwd) < 0)
        return errno;
    umask((mode_t)request->mask);
    await_tick(&before);
    if (bind(socket, &request->address.any, (socklen_t)request->length) < 0)
        return errno;
    memcpy(path, request->address.local.sun_path, request->length - offsetof(struct sockaddr_un, sun_path));
    into->served = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return into->served >= 0 && is_new(into->served, socket, &before) ? hide(path, into) : EACCES;
}

static void close_both(struct bound *bound)
{
    if (bound->served >= 0)
        close(bound->served);
    if (bound->shown >= 0)
        close(bound->shown);
    bound->served = bound->shown = -1;
}

static noreturn void serve_binds(void)
{
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NAME, "netsandbox-bind") < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0
        || dup2(ends[1], 0) < 0 || syscall(SYS_close_range, 1U, ~0U, 0U) < 0)
        _exit(1);
    for (;;) {
        struct bind_request request;
        struct bound made = { -1, -1 };
        int passed[2];
        int files[2];
        int32_t error;

        memset(&request, 0, sizeof request);
        if (receive_with(0, &request, sizeof request, passed, 2) != (ssize_t)sizeof request || passed[1] < 0
            || request.length > sizeof request.address.local)
            _exit(1);
        error = bind_here(&request, passed[0], passed[1], &made);
        close(passed[0]);
        close(passed[1]);
        files[0] = made.served;
        files[1] = made.shown;
        if (send_descriptors(0, &error, sizeof error, files, error ? 0 : 2) < 0)
            _exit(1);
        close_both(&made);
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

int bind_confined(int socket, int cwd, mode_t mask, const union address *address, socklen_t length, struct bound *into)
{
    struct bind_request request = { .mask = mask, .length = length, .address = *address };
    int passed[2] = { socket, cwd };
    int files[2] = { -1, -1 };
    int32_t error = EACCES;

    if (pthread_mutex_trylock(&lock) != 0) {
        if (!hand_over())
            return EAGAIN;
        pthread_mutex_lock(&lock);
    }
    if (ends[0] < 0 || send_descriptors(ends[0], &request, sizeof request, passed, 2) < 0 || !replies()
        || receive_with(ends[0], &error, sizeof error, files, 2) != (ssize_t)sizeof error)
        error = EACCES;
    pthread_mutex_unlock(&lock);
    into->served = files[0];
    into->shown = files[1];
    if (error == 0 && into->shown < 0)
        error = EMFILE;
    if (error)
        close_both(into);
    return error;
}
