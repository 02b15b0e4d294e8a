#include "sockets.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "caller.h"
#include "caller_socket.h"
#include "local_calls.h"
#include "own_sockets.h"
#include "refused.h"
#include "reports.h"
#include "trap_pool.h"
#include "traps.h"
#include "waiting_connect.h"

#define MAX_UNHEARD 64
#define UNPRIVILEGED_PORT 1024 /* portmap/netsandbox_portmap/bind_rule.py */

static int is_privileged;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t unhearing = PTHREAD_MUTEX_INITIALIZER;

/* Calls that were made and whose callers were interrupted before the answer, which happens before Linux 5.19. */
static struct {
    ino_t socket;
    int binds;
} unheard[MAX_UNHEARD];
static size_t unheard_next;

int use_capabilities(int use)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (!is_privileged)
        return 0;
    if (syscall(SYS_capget, &header, data) < 0)
        _exit(1);
    for (size_t number = 0; number < 2; number++)
        data[number].effective = use ? data[number].permitted : 0;
    if (syscall(SYS_capset, &header, data) < 0)
        _exit(1);
    return 1;
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

static int option(int socket, int name)
{
    int value = -1;
    socklen_t length = sizeof value;

    return getsockopt(socket, SOL_SOCKET, name, &value, &length) < 0 ? -1 : value;
}

int make_call(const struct taken *taken, int target)
{
    struct sockaddr_un file = { .sun_family = AF_UNIX };

    if (taken->binds)
        return bind(taken->copy, &taken->address.any, taken->length) < 0 ? errno : 0;
    if (target < 0)
        return connect_waiting(taken->call, taken->copy, &taken->address.any, taken->length);
    snprintf(file.sun_path, sizeof file.sun_path, "/proc/self/fd/%d", target);
    return connect_waiting(taken->call, taken->copy, (struct sockaddr *)&file, sizeof file);
}

/* The supervisor's decision, once it has recorded it. */
static int ask(const struct taken *taken, char kind, int error, const struct stat *found)
{
    char exe[PATH_MAX];
    char letter = 'Q';
    struct question question = { .id = taken->call->id, .pid = (int32_t)taken->call->pid, .error = error };
    struct iovec parts[4] = { { &letter, 1 }, { &question, sizeof question }, { exe, 1 }, { (void *)(uintptr_t)taken->path, 0 } };
    struct reply reply;
    ssize_t length;

    question.kind = (uint8_t)kind;
    question.type = (uint8_t)option(taken->copy, SO_TYPE);
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

static int is_family(int family)
{
    return family == AF_INET || family == AF_INET6 || family == AF_UNIX || family == AF_NETLINK;
}

/* Takes socket, address and path from the caller, each once. 0, or an errno with the kind of the question in *kind*. */
static int take(struct taken *taken, char *kind)
{
    const struct seccomp_notif *call = taken->call;
    uint32_t length = (uint32_t)call->data.args[2];
    int failed;

    taken->family = -1;
    taken->length = 0;
    taken->copy = caller_socket(call, (int)call->data.args[0]);
    if (taken->copy < 0) {
        *kind = errno == EBADF ? 0 : QUESTION_INTERNAL;
        return errno;
    }
    taken->family = option(taken->copy, SO_DOMAIN);
    if (taken->family < 0)
        return errno;
    if (length > sizeof taken->address.space)
        return EINVAL;
    taken->length = length;
    memset(&taken->address, 0, sizeof taken->address);
    errno = EFAULT;
    if (length > 0 && caller_memory((pid_t)call->pid, call->data.args[1], &taken->address, length) != (ssize_t)length) {
        *kind = errno == EFAULT ? QUESTION_MALFORMED : QUESTION_INTERNAL;
        return errno;
    }
    if (!is_family(taken->family) || !is_of_network(call, taken->copy)) {
        *kind = QUESTION_NETWORK;
        return EPERM;
    }
    if (taken->family == AF_UNIX) {
        int type = option(taken->copy, SO_TYPE);

        if (type != SOCK_STREAM && type != SOCK_SEQPACKET) {
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
            if (!open_root(call))
                return EACCES;
        }
    }
    return is_waiting(call) ? 0 : EACCES;
}

ino_t socket_number(int socket)
{
    struct stat found;

    return fstat(socket, &found) == 0 ? found.st_ino : 0;
}

/* Whether the same call was made before, and its success not heard. */
static int was_unheard(const struct taken *taken)
{
    ino_t socket = socket_number(taken->copy);
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
        socket = socket_number(taken->copy);
    if (taken->copy >= 0)
        close_copy(taken->copy);
    if (answer(taken->call, error) || error != 0)
        return;
    pthread_mutex_lock(&unhearing);
    unheard[unheard_next].socket = socket;
    unheard[unheard_next].binds = taken->binds;
    unheard_next = (unheard_next + 1) % MAX_UNHEARD;
    pthread_mutex_unlock(&unhearing);
}

int refusal(const struct taken *taken, char kind, int error, const struct stat *found)
{
    return hand_over() ? ask(taken, kind, error, found) : EAGAIN;
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
    struct taken taken;
    char kind = 0;
    int error;
    int is_internet;

    taken.call = call;
    taken.binds = call->data.nr == SYS_bind;
    taken.path[0] = '\0';
    error = take(&taken, &kind);
    is_internet = taken.family == AF_INET || taken.family == AF_INET6;
    if (guarded && taken.binds && is_internet && kind == 0) {
        close_copy(taken.copy);
        return 0;
    }
    if (error && kind)
        error = refusal(&taken, kind, error, NULL);
    if (error == 0) {
        if (taken.path[0] != '\0')
            error = taken.binds ? bind_path(&taken) : connect_path(&taken);
        else if (taken.binds && is_internet && needs_capability(&taken))
            error = EACCES;
        else
            error = make_call(&taken, -1);
        if (is_internet)
            report_local(&taken, error);
    }
    finish(&taken, error);
    return 1;
}

int serve_listen(const struct seccomp_notif *call, int guarded)
{
    int copy = caller_socket(call, (int)call->data.args[0]);
    int is_local = copy >= 0 && option(copy, SO_DOMAIN) == AF_UNIX && is_waiting(call);
    int error = is_local && guarded && listen(copy, (int)call->data.args[1]) < 0 ? errno : 0;

    if (copy >= 0)
        close_copy(copy);
    if (is_local && guarded)
        answer(call, error);
    else if (is_local)
        let_go_on(call);
    return is_local;
}

void sockets_begin(void)
{
    umask(0);
    is_privileged = geteuid() == 0;
    waiting_begin();
}
