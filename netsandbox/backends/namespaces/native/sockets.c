#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "call_path.h"
#include "refused.h"
#include "reports.h"
#include "traps.h"

#define MAX_OWN 8192          /* bound sockets of a session */
#define MAX_UNHEARD 64
#define UNPRIVILEGED_PORT 1024 /* portmap/bind_rule.py */
#define TICK 50000000L        /* nanoseconds between looks at a caller that waits */
#define RESTART 512           /* ERESTARTSYS: the kernel interrupts the call, or makes it again after the handler */
#define MARK 110110110L       /* nanoseconds in the time of a stand-in: one whose session is over is dead, not the host's */
#define SIOCGSKNS_REQUEST 0x894C
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#define FSCONFIG_CREATE 6

union address {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_storage space;
    char bytes[sizeof(struct sockaddr_storage) + 1];
};

/* A trapped call: what was taken from its caller. */
struct taken {
    const struct seccomp_notif *call;
    int binds;
    int copy; /* of the socket */
    int family;
    int type;
    int waits; /* a connect may block */
    union address address;
    socklen_t length;
    char path[PATH_MAX]; /* of a Unix address, as the session's root has it; empty for an abstract name */
    mode_t mask;
};

/* A socket that the session bound to a path. */
struct own {
    dev_t device;
    ino_t inode;
    ino_t socket; /* its number in /proc/net/unix */
    int stand_in; /* keeps the inode's number from being used again */
    int real;
};

static struct own own[MAX_OWN]; /* these are used by the receiving thread only */
static size_t own_count;
static size_t sweep_at = 64;
static int binder = -1;
static struct stat network;
static int has_network;
static int is_privileged;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t unhearing = PTHREAD_MUTEX_INITIALIZER;

/* Calls that were made and whose callers were interrupted before the answer, which happens before Linux 5.19. */
static struct {
    ino_t socket;
    int binds;
} unheard[MAX_UNHEARD];
static size_t unheard_next;

/* What the session's root could not do without capabilities must not be done for it either. */
static void use_capabilities(int use)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (!is_privileged)
        return;
    if (syscall(SYS_capget, &header, data) < 0)
        _exit(1);
    for (size_t number = 0; number < 2; number++)
        data[number].effective = use ? data[number].permitted : 0;
    if (syscall(SYS_capset, &header, data) < 0)
        _exit(1);
}

static int is_waiting(const struct seccomp_notif *call)
{
    uint64_t id = call->id;

    return ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Returns whether the caller heard the answer. */
static int answer(const struct seccomp_notif *call, int error)
{
    struct seccomp_notif_resp response = { .id = call->id, .error = -error };

    if (ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0)
        return 1;
    if (errno != ENOENT && errno != EINTR)
        _exit(1);
    return 0;
}

/* The supervisor's decision, once it has recorded it. */
static int ask(const struct taken *taken, char kind, int error, const struct stat *found)
{
    char exe[PATH_MAX] = "";
    char letter = 'Q';
    struct question question = { .id = taken->call->id, .pid = (int32_t)taken->call->pid, .error = error };
    struct iovec parts[4] = { { &letter, 1 }, { &question, sizeof question }, { exe, 1 }, { (void *)(uintptr_t)taken->path, 0 } };
    struct reply reply;
    ssize_t length;

    question.kind = (uint8_t)kind;
    question.type = (uint8_t)taken->type;
    question.binds = (uint8_t)taken->binds;
    question.device = found ? found->st_dev : 0;
    question.inode = found ? found->st_ino : 0;
    parts[2].iov_len = caller_link((pid_t)taken->call->pid, "exe", exe, sizeof exe) + 1;
    parts[3].iov_len = strlen(taken->path) + 1;
    if (!is_waiting(taken->call))
        return EACCES; /* the caller is gone, and what was read may be of another process */
    pthread_mutex_lock(&asking);
    to_supervisor(parts, 4, 0);
    do
        length = recv(RELAY, &reply, sizeof reply, 0);
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof reply || reply.id != question.id)
        _exit(1); /* the supervisor is gone, or nothing can be trusted any more; the session ends with us */
    pthread_mutex_unlock(&asking);
    return kind != QUESTION_SOCKET && reply.error == 0 ? error : reply.error;
}

/* The caller's descriptor, kept for the next call of the same thread: a process that is gone is never mistaken. */
static int copy_of(pid_t pid, int number)
{
    static _Thread_local int process = -1;
    static _Thread_local pid_t known;

    for (int turn = 0; turn < 2; turn++) {
        int copy;

        if (process < 0 || known != pid) {
            if (process >= 0)
                close(process);
            known = pid;
            process = (int)syscall(SYS_pidfd_open, pid, PIDFD_THREAD);
            if (process < 0 && errno == EINVAL) /* before Linux 6.9; a thread is reached through its process */
                process = (int)syscall(SYS_pidfd_open, process_of(pid), 0U);
            if (process < 0)
                return -1;
        }
        copy = (int)syscall(SYS_pidfd_getfd, process, number, 0U);
        if (copy >= 0 || errno != ESRCH)
            return copy;
        close(process);
        process = -1;
    }
    return -1;
}

/* Whether the socket was made in the session's network, which all callers share. */
static int is_of_network(const struct taken *taken)
{
    struct stat its;
    int space;

    if (!has_network) {
        char name[64];

        snprintf(name, sizeof name, "/proc/%d/ns/net", (int)taken->call->pid);
        if (stat(name, &network) < 0 || !is_waiting(taken->call))
            return 0;
        has_network = 1;
    }
    space = ioctl(taken->copy, SIOCGSKNS_REQUEST);
    if (space < 0)
        return 0;
    if (fstat(space, &its) < 0)
        its.st_ino = 0;
    close(space);
    return its.st_ino == network.st_ino && its.st_dev == network.st_dev;
}

static int option(int socket, int name)
{
    int value = -1;
    socklen_t length = sizeof value;

    return getsockopt(socket, SOL_SOCKET, name, &value, &length) < 0 ? -1 : value;
}

/* Programs that need longer paths, or a folder that cannot be exchanged, write these. */
static const struct {
    const char *prefix;
    const char *link; /* NULL: a descriptor's number follows */
} SELF[] = { { "/proc/self/fd/", NULL }, { "/dev/fd/", NULL }, { "/proc/self/cwd/", "cwd" } };

/* The absolute path that the caller means by *given*. 0, or an errno. */
static int absolute(pid_t pid, const char *given, char *into)
{
    const char *rest = given;
    size_t above = 0;

    if (given[0] != '/') {
        above = caller_link(pid, "cwd", into, PATH_MAX);
        if (above == 0 || into[0] != '/')
            return ENOENT;
    }
    for (size_t number = 0; number < sizeof SELF / sizeof *SELF; number++) {
        char *end = NULL;
        char what[32];
        long descriptor = -1;

        if (strncmp(given, SELF[number].prefix, strlen(SELF[number].prefix)) != 0)
            continue;
        rest = given + strlen(SELF[number].prefix);
        if (SELF[number].link == NULL) {
            descriptor = strtol(rest, &end, 10);
            if (end == rest || *end != '/' || descriptor < 0 || descriptor > INT_MAX)
                return ENOENT;
            rest = end + 1;
        }
        snprintf(what, sizeof what, "fd/%ld", descriptor);
        above = caller_link(pid, SELF[number].link ? SELF[number].link : what, into, PATH_MAX);
        if (above == 0 || into[0] != '/')
            return ENOENT;
        break;
    }
    if (above + 1 + strlen(rest) >= PATH_MAX)
        return ENAMETOOLONG;
    if (above > 0)
        into[above++] = '/';
    memcpy(into + above, rest, strlen(rest) + 1);
    return 0;
}

/* The mask for new files of the caller. */
static mode_t mask_of(pid_t pid)
{
    return (mode_t)strtoul(status_field(pid, "\nUmask:"), NULL, 8);
}

/* Takes socket, address and path from the caller, each once. 0, or an errno with the kind of the question in *kind*. */
static int take(struct taken *taken, char *kind)
{
    const struct seccomp_notif *call = taken->call;
    uint32_t length = (uint32_t)call->data.args[2];
    int failed;

    taken->copy = copy_of((pid_t)call->pid, (int)call->data.args[0]);
    if (taken->copy < 0) {
        *kind = errno == EBADF ? 0 : QUESTION_INTERNAL;
        return errno;
    }
    taken->family = option(taken->copy, SO_DOMAIN);
    if (taken->family < 0)
        return errno;
    taken->type = option(taken->copy, SO_TYPE);
    if (length > sizeof taken->address.space)
        return EINVAL;
    taken->length = length;
    memset(&taken->address, 0, sizeof taken->address);
    errno = EFAULT;
    if (length > 0 && caller_memory((pid_t)call->pid, call->data.args[1], &taken->address, length) != (ssize_t)length) {
        *kind = errno == EFAULT ? QUESTION_MALFORMED : QUESTION_INTERNAL;
        return errno;
    }
    if (taken->family != AF_UNIX && taken->family != AF_INET && taken->family != AF_INET6 && taken->family != AF_NETLINK) {
        *kind = QUESTION_NETWORK;
        return EPERM;
    }
    if (!is_of_network(taken)) {
        *kind = QUESTION_NETWORK;
        return EPERM;
    }
    if (taken->family == AF_UNIX) {
        if (taken->type != SOCK_STREAM && taken->type != SOCK_SEQPACKET) {
            *kind = QUESTION_NETWORK;
            return EPERM;
        }
        if (length < sizeof(sa_family_t) || length > sizeof taken->address.local || taken->address.any.sa_family != AF_UNIX)
            return EINVAL;
        if (length > sizeof(sa_family_t) && taken->address.local.sun_path[0] != '\0') {
            failed = absolute((pid_t)call->pid, taken->address.local.sun_path, taken->path);
            if (failed)
                return failed;
            if (taken->binds)
                taken->mask = mask_of((pid_t)call->pid);
        }
    }
    return is_waiting(call) && open_root(call) ? 0 : EACCES;
}

/* connect(2) to the socket file that is open as *target*. */
static int connect_file(int copy, int target)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", target);
    return connect(copy, (struct sockaddr *)&address, sizeof address);
}

static int make(const struct taken *taken, int target)
{
    if (taken->binds)
        return bind(taken->copy, &taken->address.any, taken->length);
    if (target >= 0)
        return connect_file(taken->copy, target);
    return connect(taken->copy, &taken->address.any, taken->length);
}

/* A timer of this thread interrupts a connect that waits. */
static void set_ticks(long nanoseconds)
{
    static _Thread_local int has_timer;
    static _Thread_local int timer;
    struct itimerspec when = { .it_interval.tv_nsec = nanoseconds, .it_value.tv_nsec = nanoseconds };

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
            return; /* the call can then only be interrupted by the end of its caller */
        has_timer = 1;
    }
    syscall(SYS_timer_settime, timer, 0, &when, NULL);
}

static int64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether a signal waits for the caller: 0, 1 if another of its threads may take it, 2. */
static int signal_waits(pid_t pid)
{
    uint64_t blocked = strtoull(status_field(pid, "\nSigBlk:"), NULL, 16);
    uint64_t ours = strtoull(status_field(pid, "\nSigPnd:"), NULL, 16);
    uint64_t shared = strtoull(status_field(pid, "\nShdPnd:"), NULL, 16);

    return ours & ~blocked ? 2 : shared & ~blocked ? 1 : 0;
}

/* Makes a connect that may wait. Signals and timeouts have the effect that they have on the caller's own connect. */
static int wait_for(const struct taken *taken, int target)
{
    struct timeval limit = { 0, 0 };
    socklen_t size = sizeof limit;
    int64_t began = nanoseconds();
    int64_t most;
    int seen = 0;
    int error;

    getsockopt(taken->copy, SOL_SOCKET, SO_SNDTIMEO, &limit, &size);
    most = (int64_t)limit.tv_sec * 1000000000 + (int64_t)limit.tv_usec * 1000;
    set_ticks(TICK);
    for (;;) {
        int waits;

        error = make(taken, target) == 0 ? 0 : errno;
        if (error != EINTR)
            break;
        if (!is_waiting(taken->call))
            break;
        waits = signal_waits((pid_t)taken->call->pid);
        if (waits + seen >= 2) {
            error = most > 0 ? EINTR : RESTART;
            break;
        }
        seen = waits;
        if (most > 0 && nanoseconds() - began >= most) {
            error = taken->family == AF_UNIX ? EAGAIN : EINPROGRESS;
            break;
        }
    }
    set_ticks(0);
    return error;
}

static ino_t number_of(int socket)
{
    struct stat found;

    return fstat(socket, &found) == 0 ? found.st_ino : 0;
}

/* Whether the same call was made before, and its success not heard. */
static int was_unheard(const struct taken *taken)
{
    ino_t socket = number_of(taken->copy);
    int found = 0;

    pthread_mutex_lock(&unhearing);
    for (size_t number = 0; number < MAX_UNHEARD && !found; number++)
        if (unheard[number].socket == socket && unheard[number].binds == taken->binds) {
            unheard[number].socket = 0;
            found = 1;
        }
    pthread_mutex_unlock(&unhearing);
    return found;
}

/* Closes the copy and answers. The copy goes first: a caller that closes its socket next must be the last to have it. */
static void finish(const struct taken *taken, int error)
{
    ino_t socket = 0;

    if ((error == EISCONN && !taken->binds) || (error == EINVAL && taken->binds))
        if (taken->copy >= 0 && was_unheard(taken))
            error = 0;
    if (error == 0)
        socket = number_of(taken->copy);
    if (taken->copy >= 0)
        close(taken->copy);
    if (answer(taken->call, error) || error != 0)
        return;
    pthread_mutex_lock(&unhearing);
    unheard[unheard_next].socket = socket;
    unheard[unheard_next].binds = taken->binds;
    unheard_next = (unheard_next + 1) % MAX_UNHEARD;
    pthread_mutex_unlock(&unhearing);
}

/* A refusal, or a question: other calls go on meanwhile. */
static int refusal(const struct taken *taken, char kind, int error, const struct stat *found)
{
    return hand_over() ? ask(taken, kind, error, found) : EAGAIN;
}

/* Makes the call; if it may wait, another thread receives from now on. */
static int carry_out_call(const struct taken *taken, int target)
{
    if (!taken->waits)
        return make(taken, target) == 0 ? 0 : errno;
    if (!hand_over())
        return EAGAIN;
    return wait_for(taken, target);
}

/* Sockets of the session */

static struct own *own_at(const struct stat *found)
{
    for (size_t number = 0; number < own_count; number++)
        if (own[number].inode == found->st_ino && own[number].device == found->st_dev)
            return &own[number];
    return NULL;
}

static void forget(size_t number)
{
    close(own[number].stand_in);
    close(own[number].real);
    own[number] = own[--own_count];
}

/* Drops sockets that no longer exist, by the kernel's list of the session's network. */
static void sweep(pid_t pid)
{
    static char alive[MAX_OWN];
    char line[256];
    FILE *list;

    snprintf(line, sizeof line, "/proc/%d/net/unix", (int)pid);
    list = fopen(line, "re");
    if (list == NULL)
        return;
    memset(alive, 0, sizeof alive);
    while (fgets(line, sizeof line, list) != NULL) {
        unsigned long socket;

        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &socket) != 1)
            continue;
        for (size_t number = 0; number < own_count; number++)
            if (own[number].socket == (ino_t)socket)
                alive[number] = 1;
    }
    fclose(list);
    for (size_t number = own_count; number-- > 0;)
        if (!alive[number])
            forget(number);
    sweep_at = own_count < 32 ? 64 : own_count * 2;
    if (sweep_at > MAX_OWN)
        sweep_at = MAX_OWN;
}

/* Opens the socket file that the caller means. Where only the capabilities of root lead, it is not the session's own. */
static int open_key(const char *path, int *is_beyond)
{
    int place;
    int error;

    use_capabilities(0);
    place = inside(path, 0);
    error = errno;
    use_capabilities(1);
    *is_beyond = place < 0 && error == EACCES && is_privileged;
    if (*is_beyond)
        return inside(path, 0);
    errno = error;
    return place;
}

/* The session has temporary folders of its own, and programs look for their sockets there before they make them. */
static int is_temporary(const char *path)
{
    const char *own_folder = strncmp(path, "/tmp/", 5) == 0 ? "/tmp" : strncmp(path, "/var/tmp/", 9) == 0 ? "/var/tmp" : NULL;
    char above[PATH_MAX];
    struct stat found;
    struct stat temporary;
    int folder;
    int place = -1;
    int is_own;

    if (own_folder == NULL)
        return 0;
    memcpy(above, path, strlen(path) + 1);
    for (char *slash; place < 0 && (slash = strrchr(above, '/')) != NULL && slash != above; place = inside(above, 0))
        *slash = '\0';
    folder = inside(own_folder, 0);
    is_own = place >= 0 && folder >= 0 && fstat(place, &found) == 0 && fstat(folder, &temporary) == 0
        && found.st_dev == temporary.st_dev;
    if (place >= 0)
        close(place);
    if (folder >= 0)
        close(folder);
    return is_own;
}

/* A missing socket: an error of the session's own, or a socket of the host that it does not see. */
static int connect_missing(const struct taken *taken, int error)
{
    struct stat found;

    if (is_missing(error) && !is_temporary(taken->path) && stat(taken->path, &found) == 0 && S_ISSOCK(found.st_mode))
        return refusal(taken, QUESTION_HIDDEN, error, NULL);
    return error;
}

static int connect_own(const struct taken *taken, int place, const struct own *known)
{
    int target;
    int error = 0;

    use_capabilities(0); /* its owner may have closed it by its mode */
    if (syscall(SYS_faccessat2, place, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) < 0 && errno == EACCES)
        error = EACCES;
    use_capabilities(1);
    if (error)
        return error;
    target = fcntl(known->real, F_DUPFD_CLOEXEC, 0); /* a sweep may close the other one while we wait */
    if (target < 0)
        return errno;
    error = carry_out_call(taken, target);
    close(target);
    return error;
}

static int connect_path(const struct taken *taken)
{
    struct stat found;
    const struct own *known;
    int is_beyond;
    int place = open_key(taken->path, &is_beyond);
    int error;

    if (place < 0)
        return connect_missing(taken, errno);
    if (fstat(place, &found) < 0 || !S_ISSOCK(found.st_mode)) {
        close(place);
        return is_beyond ? EACCES : ECONNREFUSED;
    }
    known = is_beyond ? NULL : own_at(&found);
    if (known != NULL)
        error = connect_own(taken, place, known);
    else if (found.st_mtim.tv_nsec == MARK) /* a stand-in of an earlier session */
        error = ECONNREFUSED;
    else
        error = refusal(taken, QUESTION_SOCKET, EACCES, &found);
    if (known == NULL && error == 0)
        error = wait_for(taken, place);
    close(place);
    return error;
}

/* The binder: its root is an empty tree. */

static void make_folders(char *path, int remove)
{
    if (!remove) {
        for (char *at = path + 1; *at != '\0'; at++)
            if (*at == '/') {
                *at = '\0';
                mkdir(path, 0700);
                *at = '/';
            }
        return;
    }
    for (size_t at = strlen(path); at-- > 1;)
        if (path[at] == '/') {
            path[at] = '\0';
            rmdir(path);
            path[at] = '/';
        }
}

static int send_one(int socket, const void *data, size_t length, int descriptor)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec vector = { (void *)(uintptr_t)data, length };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };

    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    for (;;) {
        ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);

        if (sent >= 0 || errno != EINTR)
            return sent == (ssize_t)length ? 0 : -1;
    }
}

static ssize_t receive_one(int socket, void *data, size_t size, int *descriptor)
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

/* 0, or why there is no tree of its own. */
static int enter_tree(int process)
{
    int context;
    int tree;

    if (setns(process, CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return errno;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return errno;
    context = (int)syscall(SYS_fsopen, "tmpfs", 1U);
    if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CREATE, NULL, NULL, 0) < 0)
        return errno;
    tree = (int)syscall(SYS_fsmount, context, 1U, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (tree < 0 || fchdir(tree) < 0 || chroot(".") < 0)
        return errno;
    return 0;
}

static noreturn void serve_binds(int requests, int process)
{
    int32_t error = enter_tree(process);

    if (dup2(requests, 0) < 0 || syscall(SYS_close_range, 1U, ~0U, 0U) < 0)
        _exit(1);
    if (send_one(0, &error, sizeof error, -1) < 0 || error)
        _exit(1);
    for (;;) {
        union address address;
        int socket;
        int made = -1;
        ssize_t length;
        char *path = address.local.sun_path;

        memset(&address, 0, sizeof address);
        length = receive_one(0, &address, sizeof address.local, &socket);
        if (length <= (ssize_t)sizeof(sa_family_t) || socket < 0 || path[0] == '\0')
            _exit(1);
        make_folders(path, 0);
        error = bind(socket, &address.any, (socklen_t)length) < 0 ? errno : 0;
        if (error == 0) {
            made = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
            error = made < 0 ? errno : 0;
            unlink(path);
        }
        make_folders(path, 1);
        close(socket);
        if (send_one(0, &error, sizeof error, made) < 0)
            _exit(1);
        if (made >= 0)
            close(made);
    }
}

static void start_binder(pid_t pid)
{
    int ends[2];
    int32_t error;
    int none;
    int process = (int)syscall(SYS_pidfd_open, process_of(pid), 0U);

    if (process < 0)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        pid_t child = fork();

        if (child == 0)
            serve_binds(ends[1], process);
        close(ends[1]);
        if (child > 0 && receive_one(ends[0], &error, sizeof error, &none) == (ssize_t)sizeof error && error == 0)
            binder = ends[0];
        else
            close(ends[0]);
    }
    close(process);
}

/* Binds the copy to its bytes in the binder's tree: a descriptor of the socket's file, or -1 with errno. */
static int bind_apart(const struct taken *taken)
{
    int32_t error = EACCES;
    int made = -1;

    if (send_one(binder, &taken->address, taken->length, taken->copy) < 0
        || receive_one(binder, &error, sizeof error, &made) != (ssize_t)sizeof error)
        error = EACCES;
    errno = error ? error : made < 0 ? EMFILE : 0;
    return error ? -1 : made;
}

/* Makes the stand-in. Its descriptor, or -1 with errno. */
static int make_stand_in(const struct taken *taken, int folder, const char *name)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL), .tv_nsec = MARK } };
    struct stat socket;
    int made;

    if (fstat(taken->copy, &socket) < 0 || mknodat(folder, name, (socket.st_mode & 07777 & ~taken->mask) | S_IFSOCK, 0) < 0)
        return -1;
    utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW);
    made = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0)
        unlinkat(folder, name, 0);
    return made;
}

static int bind_in(const struct taken *taken, int folder, const char *name)
{
    struct own added = { .real = -1, .socket = number_of(taken->copy) };
    struct stat found;

    added.stand_in = make_stand_in(taken, folder, name);
    if (added.stand_in < 0)
        return errno == EEXIST ? EADDRINUSE : errno;
    added.real = fstat(added.stand_in, &found) == 0 ? bind_apart(taken) : -1;
    if (added.real < 0) {
        int error = errno ? errno : EACCES;

        unlinkat(folder, name, 0);
        close(added.stand_in);
        return error;
    }
    added.device = found.st_dev;
    added.inode = found.st_ino;
    own[own_count++] = added;
    return 0;
}

static int is_bound(int socket)
{
    struct sockaddr_un here;
    socklen_t length = sizeof here;

    return getsockname(socket, (struct sockaddr *)&here, &length) < 0 || length > sizeof(sa_family_t);
}

static int bind_path(struct taken *taken)
{
    char *slash = strrchr(taken->path, '/');
    const char *name = slash + 1;
    int folder;
    int error;

    if (is_bound(taken->copy))
        return EINVAL;
    if (*name == '\0')
        return ENOENT;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return EADDRINUSE;
    if (own_count >= sweep_at)
        sweep((pid_t)taken->call->pid);
    if (own_count == MAX_OWN)
        return ENOMEM;
    if (binder < 0)
        start_binder((pid_t)taken->call->pid);
    if (binder < 0 || !is_waiting(taken->call))
        return EACCES;
    use_capabilities(0);
    if (slash == taken->path) {
        folder = inside("/", O_DIRECTORY);
    } else {
        *slash = '\0';
        folder = inside(taken->path, O_DIRECTORY);
        *slash = '/';
    }
    error = folder < 0 ? errno : bind_in(taken, folder, name);
    if (folder >= 0)
        close(folder);
    use_capabilities(1);
    return error;
}

/* We may bind a port for which the command has no capability. */
static int needs_capability(const struct taken *taken)
{
    uint16_t port = 0;

    if (taken->length >= 4)
        memcpy(&port, taken->address.bytes + 2, sizeof port);
    port = ntohs(port);
    return port > 0 && port < UNPRIVILEGED_PORT;
}

int serve_socket(const struct seccomp_notif *call, int guarded)
{
    struct taken taken = { .call = call, .binds = call->data.nr == SYS_bind, .copy = -1 };
    char kind = 0;
    int error;

    taken.path[0] = '\0';
    error = take(&taken, &kind);
    if (guarded && taken.binds && (taken.family == AF_INET || taken.family == AF_INET6) && kind == 0) {
        close(taken.copy);
        return 0;
    }
    if (error && kind)
        error = refusal(&taken, kind, error, NULL);
    if (error == 0) {
        taken.waits = !taken.binds && taken.type != SOCK_DGRAM && taken.family != AF_NETLINK
            && !(fcntl(taken.copy, F_GETFL) & O_NONBLOCK);
        if (taken.path[0] != '\0')
            error = taken.binds ? bind_path(&taken) : connect_path(&taken);
        else if (taken.binds && (taken.family == AF_INET || taken.family == AF_INET6) && needs_capability(&taken))
            error = EACCES;
        else
            error = carry_out_call(&taken, -1);
    }
    finish(&taken, error);
    return 1;
}

static void nothing(int number)
{
    (void)number;
}

void sockets_begin(void)
{
    struct sigaction action = { .sa_handler = nothing };
    sigset_t ticks;

    sigemptyset(&ticks);
    sigaddset(&ticks, SIGUSR1);
    if (sigaction(SIGUSR1, &action, NULL) < 0 || pthread_sigmask(SIG_UNBLOCK, &ticks, NULL) < 0)
        _exit(1);
    umask(0);
    is_privileged = geteuid() == 0;
}
