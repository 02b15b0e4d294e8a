#include "refused.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trap_pool.h"
#include "traps.h"

#define MAX_HIDDEN 131072 /* bytes of their names */
#define LISTED 'x'        /* no path begins with it */
#define KNOWN 64          /* folders, a power of two */
#define KNOWN_FOR 100000000LL /* nanoseconds */

/* Nothing is asked of a disk or a server: a hanging file system would hold up every call on files. */
#define LOOK (AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC)

static char hidden[MAX_HIDDEN];
static int has_list;
static int root = -1; /* the session's, which all callers share */

/* The system is shown everywhere, so reads there need no look. */
static const char *const SHOWN[] = { "/usr/", "/lib", "/etc/", "/sys/", "/bin/", "/sbin/" };

void receive_hidden(void)
{
    ssize_t length;

    do
        length = recv(RELAY, hidden, sizeof hidden, MSG_TRUNC);
    while (length < 0 && errno == EINTR);
    if (length <= 0 || (size_t)length > sizeof hidden || hidden[length - 1] != '\0'
        || (length > 1 && hidden[length - 2] != '\0'))
        _exit(1);
    for (const char *each = hidden; *each != '\0'; each += strlen(each) + 1)
        has_list |= *each == LISTED;
}

int open_root(const struct seccomp_notif *call)
{
    char name[64];

    if (root >= 0)
        return 1;
    snprintf(name, sizeof name, "/proc/%d/root", (int)call->pid);
    root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0 && !is_waiting(call)) { /* it may be of another process */
        close(root);
        root = -1;
    }
    return root >= 0;
}

/* The length of the folder of *path*, which is absolute. */
static size_t folder_length(const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 1 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

/* Opens *path* as the session sees it. */
int inside(const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

int is_missing(int number)
{
    return number == ENOENT || number == ENOTDIR || number == EACCES || number == ELOOP;
}

static int on_host(const char *path, int flags)
{
    struct statx found;

    return statx(AT_FDCWD, path, flags | LOOK, STATX_TYPE, &found) == 0;
}

/* Whether the user may write it on the host. */
static int host_writes(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static int is_read_only(int place)
{
    return syscall(SYS_faccessat2, place, "", W_OK, AT_EMPTY_PATH) < 0 && errno == EROFS;
}

static int starts_with(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Whether a rule hides *path*, by its name: the session sees something empty there. */
static int is_hidden(const char *path)
{
    for (const char *each = hidden; *each != '\0'; each += strlen(each) + 1)
        if (starts_with(path, each))
            return 1;
    return 0;
}

/* Where it is kept whether the session was seen to be able to write *folder*, a moment ago; NULL for a long one. An
 * installation makes thousands of names in few folders. */
static int *known_writable(const char *folder, size_t length)
{
    static struct {
        long long until;
        int writes;
        char path[256];
    } known[KNOWN];
    struct timespec now;
    uint32_t key = 2166136261U; /* FNV-1a */
    long long time;

    if (length >= sizeof known->path)
        return NULL;
    for (size_t number = 0; number < length; number++)
        key = (key ^ (unsigned char)folder[number]) * 16777619U;
    key = (key ^ key >> 16) & (KNOWN - 1);
    clock_gettime(CLOCK_MONOTONIC, &now);
    time = now.tv_sec * 1000000000LL + now.tv_nsec;
    if (known[key].until < time || strcmp(known[key].path, folder) != 0) {
        memcpy(known[key].path, folder, length + 1);
        known[key].until = time + KNOWN_FOR;
        known[key].writes = 0;
    }
    return &known[key].writes;
}

/* 'h' if the session does not see *folder*, 'r' if it is read-only there, or 0. */
static char refused_folder(const char *folder, size_t length)
{
    int *writes = known_writable(folder, length);
    int place;
    char why = 0;

    if (writes != NULL && *writes)
        return 0;
    place = inside(folder, 0);
    if (place < 0)
        return is_missing(errno) ? 'h' : 0;
    if (is_read_only(place))
        why = 'r';
    else if (writes != NULL)
        *writes = 1;
    close(place);
    return why;
}

static int is_inside(const char *path, int flags)
{
    int place = inside(path, flags);

    if (place >= 0)
        close(place);
    return place >= 0;
}

static int host_could_change(const char *path)
{
    return on_host(path, AT_SYMLINK_NOFOLLOW) && host_writes(path);
}

/* Whether a file is protected by itself, so that its name cannot be removed or replaced (EBUSY). Such names begin with a
 * dot: others need no look. */
static int is_held(const char *path, char does)
{
    int place;
    int is_held;

    if ((does != 'u' && does != 'n') || strrchr(path, '/')[1] != '.' || (place = inside(path, O_NOFOLLOW)) < 0)
        return 0;
    is_held = is_read_only(place) && host_writes(path);
    close(place);
    return is_held;
}

char refused_write(const char *path, char *does, int follow)
{
    char folder[PATH_MAX];
    size_t length = folder_length(path);
    int place = -1;
    int is_read = 0;
    char why;

    if (*does == 'w' || *does == 'c') {
        place = inside(path, follow ? 0 : O_NOFOLLOW);
        if (place < 0 && !is_missing(errno))
            return 0;
        if (*does == 'c')
            *does = place < 0 ? 'n' : 'w';
    }
    if (place >= 0) {
        is_read = is_read_only(place);
        close(place);
    }
    if (is_hidden(path))
        return 'd';
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (place >= 0) /* a protected file that the host does not have could be made there */
        return is_read && host_writes(on_host(path, AT_SYMLINK_NOFOLLOW) ? path : folder) ? 'r' : 0;
    why = refused_folder(folder, length);
    if (why == 0)
        return is_held(path, *does) ? 'r' : 0;
    if (*does == 'w' || (*does == 'u' && (why == 'h' || !is_inside(path, O_NOFOLLOW))))
        return host_could_change(path) ? 'h' : 0;
    if ((*does == 'd' || *does == 'e') && is_inside(path, O_NOFOLLOW)) /* the kernel says EEXIST */
        return 0;
    return host_writes(folder) ? why : 0;
}

/* Entries of the hidden names that begin with LISTED are the programs and folders that may be executed; without one,
 * every program may. Landlock refuses; this only tells. */
static int is_listed(const char *path, char *real)
{
    char link[64];
    ssize_t length;
    int place = has_list ? inside(path, 0) : -1;

    if (place < 0)
        return 1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", place);
    length = readlink(link, real, PATH_MAX - 1);
    close(place);
    if (length < 0)
        return 1;
    real[length] = '\0';
    for (const char *each = hidden; *each != '\0'; each += strlen(each) + 1)
        if (*each == LISTED && starts_with(real, each + 1))
            return 1;
    return 0;
}

char refused_execution(char *path)
{
    char real[PATH_MAX];

    if (is_listed(path, real))
        return refused_read(path);
    strcpy(path, real);
    return 'x';
}

char refused_read(const char *path)
{
    if (is_hidden(path))
        return on_host(path, 0) ? 'd' : 0;
    for (size_t number = 0; number < sizeof SHOWN / sizeof *SHOWN; number++)
        if (strncmp(path, SHOWN[number], strlen(SHOWN[number])) == 0)
            return 0;
    return !is_inside(path, 0) && is_missing(errno) && on_host(path, 0) ? 'h' : 0;
}

int is_change(const char *path, char does)
{
    if (does == 'd' || does == 'e') /* what is there already is not made */
        return !is_inside(path, O_NOFOLLOW);
    return does != 'w' || is_inside(path, 0);
}
