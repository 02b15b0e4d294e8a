/* Unix sockets of the session.
 *
 * A path is only a key. To what it leads is opened once, and connected to by that descriptor, never by its name again. A
 * stand-in of the session leads to the socket that it stands for; about any other file the supervisor decides. A stand-in is
 * made by the binder, a process that is confined as the command is: the kernel decides whether a name may be made there. The
 * socket itself is bound in a folder of netsandbox that the session cannot write, so nothing can take its place meanwhile.
 * Abstract names belong to the network, which is the host's here, so those of the session get a prefix. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "binder.h"
#include "caller.h"
#include "calls.h"
#include "questions.h"
#include "trap_pool.h"
#include "waiting_connect.h"

#define MAX_OWN 1024
#define HEADER offsetof(struct sockaddr_un, sun_path)

/* A socket that the session bound, by its stand-in; the descriptor keeps that inode's number from being used again. */
static struct {
    dev_t device;
    ino_t inode;
    int shown;  /* the stand-in at its path */
    int served; /* where it is bound, without a name */
} own[MAX_OWN];
static size_t own_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int unix_socket(const struct seccomp_notif *call, int type, int flags)
{
    int made = socket(AF_UNIX, type | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), 0);
    struct entry *entry;

    if (made < 0)
        return errno;
    entry = entry_add(made, -1, KIND_UNIX, AF_UNIX, type, (pid_t)call->pid);
    if (entry == NULL) {
        close(made);
        return ENOMEM;
    }
    if (answer_with(call, made, flags & SOCK_CLOEXEC) != 0)
        entry_remove(entry);
    else
        entry_done(entry);
    return 0;
}

static void keep_name(struct entry *entry, const union address *address, socklen_t length)
{
    free(entry->name);
    entry->name = malloc(length);
    entry->name_length = entry->name == NULL ? 0 : (uint16_t)length;
    if (entry->name != NULL)
        memcpy(entry->name, address, length);
}

/* The session's own form of an abstract name: a random prefix, and the name's hash and length. */
static socklen_t own_name(const union address *given, socklen_t length, union address *into)
{
    static unsigned char prefix[24];
    static int has_prefix;
    uint64_t hash[2] = { 14695981039346656037ULL, 1099511628211ULL };
    size_t size = length - HEADER;

    pthread_mutex_lock(&lock);
    while (!has_prefix)
        has_prefix = getrandom(prefix, sizeof prefix, 0) == (ssize_t)sizeof prefix;
    pthread_mutex_unlock(&lock);
    for (size_t number = 1; number < size; number++) {
        hash[0] = (hash[0] ^ (unsigned char)given->local.sun_path[number]) * 1099511628211ULL;
        hash[1] = (hash[1] + (unsigned char)given->local.sun_path[number]) * 6364136223846793005ULL + number;
    }
    memset(into, 0, sizeof *into);
    into->local.sun_family = AF_UNIX;
    memcpy(into->local.sun_path + 1, prefix, sizeof prefix);
    memcpy(into->local.sun_path + 1 + sizeof prefix, hash, sizeof hash);
    into->local.sun_path[1 + sizeof prefix + sizeof hash] = (char)size;
    return (socklen_t)(HEADER + 2 + sizeof prefix + sizeof hash);
}

/* Opens what the caller means by a path, without following it to anything but a file. -1 with errno. */
static int open_target(const struct seccomp_notif *call, const char *path)
{
    char folder[64];
    int start = AT_FDCWD;
    int found;

    if (path[0] != '/') {
        snprintf(folder, sizeof folder, "/proc/%d/cwd", (int)call->pid);
        start = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (start < 0)
            return -1;
    } else if (strncmp(path, "/proc/self/", 11) == 0 || strncmp(path, "/dev/fd/", 8) == 0) {
        errno = ENOENT; /* ours, not the caller's */
        return -1;
    }
    found = openat(start, path, O_PATH | O_CLOEXEC);
    if (start >= 0) {
        int error = errno;

        close(start);
        errno = error;
    }
    return found;
}

/* A descriptor of the socket file that a stand-in stands for; -1 if the session has bound none there. */
static int own_file(const struct stat *found)
{
    int file = -1;

    pthread_mutex_lock(&lock);
    for (size_t number = 0; number < own_count && file < 0; number++)
        if (own[number].inode == found->st_ino && own[number].device == found->st_dev)
            file = fcntl(own[number].served, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&lock);
    return file;
}

static void remember(int shown, int served)
{
    struct stat found = { .st_ino = 0 };

    fstat(shown, &found);
    pthread_mutex_lock(&lock);
    if (own_count == MAX_OWN) { /* the oldest, which is most likely gone */
        close(own[0].shown);
        close(own[0].served);
        memmove(own, own + 1, (MAX_OWN - 1) * sizeof *own);
        own_count--;
    }
    own[own_count].device = found.st_dev;
    own[own_count].inode = found.st_ino;
    own[own_count].shown = shown;
    own[own_count++].served = served;
    pthread_mutex_unlock(&lock);
}

/* The supervisor's decision about a socket that is not the session's: 0, or an errno. */
static int ask_about(const struct seccomp_notif *call, const struct entry *entry, const char *path, const struct stat *found)
{
    struct question question = { .kind = QUESTION_SOCKET, .family = AF_UNIX, .type = entry->type };
    struct verdict verdict;

    if (found->st_mtim.tv_nsec == MARK) /* a stand-in of an earlier session */
        return ECONNREFUSED;
    question.device = found->st_dev;
    question.inode = found->st_ino;
    return ask(call, &question, path, &verdict);
}

static int connect_file(const struct seccomp_notif *call, struct entry *entry, int target)
{
    struct sockaddr_un file = { .sun_family = AF_UNIX };

    snprintf(file.sun_path, sizeof file.sun_path, "/proc/self/fd/%d", target);
    return connect_waiting(call, entry->copy, (struct sockaddr *)&file, sizeof file);
}

/* The rights of the stand-in count: a server may have changed them. */
static int may_connect(int target)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", target);
    return access(path, W_OK) == 0;
}

static int connect_path(const struct seccomp_notif *call, struct entry *entry, const char *path)
{
    struct stat found;
    int target = open_target(call, path);
    int own_target = -1;
    int error;

    if (target < 0)
        return errno == EACCES || errno == ELOOP ? EACCES : ENOENT;
    error = fstat(target, &found) < 0 ? errno : S_ISSOCK(found.st_mode) ? 0 : ECONNREFUSED;
    if (error == 0)
        own_target = own_file(&found);
    if (error == 0)
        error = own_target < 0 ? ask_about(call, entry, path, &found) : may_connect(target) ? 0 : EACCES;
    if (error == 0)
        error = connect_file(call, entry, own_target >= 0 ? own_target : target);
    if (own_target >= 0)
        close(own_target);
    close(target);
    return error;
}

static int is_abstract(const union address *address, socklen_t length)
{
    return length > HEADER && address->local.sun_path[0] == '\0';
}

static int check(const union address *address, socklen_t length)
{
    if (length < sizeof(sa_family_t) || length > sizeof address->local || address->any.sa_family != AF_UNIX)
        return EINVAL;
    return 0;
}

int unix_connect(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    union address own_form;
    int error = check(address, length);

    if (error == 0 && (entry->copy < 0 || length == sizeof(sa_family_t)))
        error = entry->is_connected ? EISCONN : EINVAL;
    if (error)
        return error;
    if (is_abstract(address, length)) {
        length = own_name(address, length, &own_form);
        error = connect_waiting(call, entry->copy, &own_form.any, length);
    } else {
        char path[sizeof address->local.sun_path + 1];

        snprintf(path, sizeof path, "%.*s", (int)(length - HEADER), address->local.sun_path);
        error = connect_path(call, entry, path);
    }
    if (error == 0) {
        entry->is_connected = 1;
        entry_drop_copy(entry);
    }
    return error;
}

/* Binds a socket in our working folder, which is out of the session's reach, and takes the name away before the socket listens.
 * Only who has the descriptor can connect. -1 with errno. */
static int bind_apart(int socket)
{
    static atomic_uint count;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int served = -1;

    snprintf(address.sun_path, sizeof address.sun_path, "socket-%d-%u", (int)getpid(), atomic_fetch_add(&count, 1));
    unlink(address.sun_path); /* of a broker that was killed */
    if (bind(socket, (struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    served = open(address.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    unlink(address.sun_path);
    return served;
}

static int bind_path(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    const char *mask = status_field((pid_t)call->pid, "\nUmask:");
    char folder[64];
    int cwd;
    int shown;
    int served;
    int error;

    snprintf(folder, sizeof folder, "/proc/%d/cwd", (int)call->pid);
    cwd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (cwd < 0)
        return EACCES;
    error = *mask && is_waiting(call) ? make_stand_in(cwd, (mode_t)strtoul(mask, NULL, 8), address, length, &shown) : EACCES;
    close(cwd);
    if (error)
        return error;
    served = bind_apart(entry->copy);
    if (served < 0) {
        error = errno;
        close(shown);
        return error;
    }
    remember(shown, served);
    return 0;
}

int unix_bind(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    union address own_form;
    int error = check(address, length);

    if (error == 0 && (entry->copy < 0 || entry->has_local))
        error = EINVAL;
    if (error)
        return error;
    if (length == sizeof(sa_family_t)) { /* any abstract name, which nobody can guess */
        error = bind(entry->copy, &address->any, length) < 0 ? errno : 0;
    } else if (is_abstract(address, length)) {
        socklen_t size = own_name(address, length, &own_form);

        error = bind(entry->copy, &own_form.any, size) < 0 ? errno : 0;
    } else {
        error = bind_path(call, entry, address, length);
    }
    if (error == 0)
        entry->has_local = 1;
    if (error == 0 && length > sizeof(sa_family_t))
        keep_name(entry, address, length);
    return error;
}
