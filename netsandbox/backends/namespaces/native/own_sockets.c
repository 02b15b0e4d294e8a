#include "own_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "binder.h"
#include "refused.h"
#include "sockets.h"
#include "trap_pool.h"
#include "traps.h"

#define MAX_OWN 8192    /* bound sockets of a session */
#define MARK 110110110L /* nanoseconds in the time of a stand-in: one whose session is over is dead, not the host's */

/* A socket that the session bound to a path. */
struct own {
    dev_t device;
    ino_t inode;
    ino_t socket; /* its number in /proc/net/unix */
    int stand_in; /* keeps the inode's number from being used again */
    int real;
};

static struct own own[MAX_OWN];
static size_t own_count;
static size_t sweep_at = 64;

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
    int has_more = use_capabilities(0);
    int place = inside(path, 0);
    int error = errno;

    use_capabilities(1);
    *is_beyond = place < 0 && error == EACCES && has_more;
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
    error = make_call(taken, target);
    close(target);
    return error;
}

int connect_path(const struct taken *taken)
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
    else if ((error = refusal(taken, QUESTION_SOCKET, EACCES, &found)) == 0)
        error = make_call(taken, place);
    close(place);
    return error;
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
    struct own added = { .real = -1, .socket = socket_number(taken->copy) };
    struct stat found;

    added.stand_in = make_stand_in(taken, folder, name);
    if (added.stand_in < 0)
        return errno == EEXIST ? EADDRINUSE : errno;
    added.real = fstat(added.stand_in, &found) == 0 ? bind_apart(taken->copy, &taken->address, taken->length) : -1;
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

int bind_path(struct taken *taken)
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
    if (!has_binder(taken->call) || !is_waiting(taken->call))
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

