#define _GNU_SOURCE
#include "opener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"

#define USERS 4  /* the session's user namespace */
#define MOUNTS 5 /* its mount namespace */

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* A detached mount of *path* and what lies below it, or -1. */
static int mount_of(const char *path, int writes)
{
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_NO_SYMLINKS };
    struct mount_attr attributes = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (writes ? 0 : MOUNT_ATTR_RDONLY),
                                     .propagation = MS_PRIVATE };
    struct stat found;
    int place = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    int tree = -1;

    if (place < 0)
        return -1;
    if (fstat(place, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)))
        tree = (int)syscall(SYS_open_tree, place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
    else
        errno = ELOOP; /* something else is there now */
    if (tree >= 0
        && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) < 0) {
        int number = errno;

        close(tree);
        tree = -1;
        errno = number;
    }
    close(place);
    return tree;
}

static int opened(const struct open_request *request, const char *path)
{
    char name[64];
    int tree = mount_of(path, request->writes);
    int file;
    int number;

    if (tree < 0)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", tree);
    file = open(name, (int)request->flags | O_CLOEXEC | O_NOCTTY);
    number = errno;
    close(tree);
    errno = number;
    return file;
}

static int made(const struct open_request *request, char *path)
{
    char *name = strrchr(path, '/');
    int flags = (int)request->flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int tree;
    int file;
    int number;

    *name = '\0';
    tree = mount_of(*path ? path : "/", 1);
    if (tree < 0)
        return -1;
    file = openat(tree, name + 1, flags, (mode_t)request->mode);
    number = errno;
    close(tree);
    errno = number;
    return file;
}

/* Makes a folder or an empty file at *name* of *folder*. 0, or -1. */
static int make(int folder, const char *name, int is_folder)
{
    int file;

    if (is_folder)
        return mkdirat(folder, name, 0755);
    file = openat(folder, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return -1;
    return close(file);
}

/* The place in the session to mount on; what is missing on the way is made. The session's root is mounted read-only, so
 * that is done through another mount of it. */
static int mount_point(char *path, int is_folder)
{
    struct mount_attr attributes = { .attr_clr = MOUNT_ATTR_RDONLY };
    int root = (int)syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    int place = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *name = path;

    if (root < 0 || syscall(SYS_mount_setattr, root, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
        return -1;
    while (place >= 0 && name != NULL) {
        char *start = name + 1;
        char *end = strchr(start, '/');
        int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (end ? O_DIRECTORY : 0);
        int next;

        if (end != NULL)
            *end = '\0';
        next = openat(place, start, flags);
        if (next < 0 && errno == ENOENT
            && (make(place, start, end || is_folder) == 0 || (errno == EROFS && make(root, path + 1, end || is_folder) == 0)))
            next = openat(place, start, flags);
        close(place);
        place = next;
        if (end != NULL)
            *end = '/';
        name = end;
    }
    return place;
}

/* Whether nothing of the session is at *place*, which a folder would cover. */
static int is_empty(int place)
{
    int folder = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = folder < 0 ? NULL : fdopendir(folder);
    int count = 0;

    while (entries != NULL && readdir(entries) != NULL)
        count++;
    if (entries == NULL || count > 2)
        errno = ENOTEMPTY;
    return entries != NULL && count <= 2; /* itself and the one above */
}

/* In a child, since it enters the session's mounts: the errno. */
static int shown(int tree, char *path)
{
    struct stat found;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        int is_folder = fstat(tree, &found) == 0 && S_ISDIR(found.st_mode);
        int place = setns(MOUNTS, CLONE_NEWNS) == 0 ? mount_point(path, is_folder) : -1;

        if (place >= 0 && (!is_folder || is_empty(place))
            && syscall(SYS_move_mount, tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0)
            _exit(0);
        _exit(errno & 0xff);
    }
    if (pid < 0)
        return errno;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static int show(char *path)
{
    int tree = mount_of(path, 0);
    int number;

    if (tree < 0)
        return errno;
    number = shown(tree, path);
    close(tree);
    return number;
}

static void reply(int32_t number, int file)
{
    if (send_descriptors(CHANNEL, &number, sizeof number, &file, file >= 0) < 0)
        _exit(1);
}

static void serve_open(const struct open_request *request, char *path)
{
    int file;

    if (request->does == 'x') {
        reply(show(path), -1);
        return;
    }
    file = request->does == 'n' ? made(request, path) : opened(request, path);
    reply(file < 0 ? errno : 0, file);
    if (file >= 0)
        close(file);
}

/* Only what mounting needs: with the others we would open files that their modes close to the user. */
static int keep_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct kept[2] = { { 0 } };

    kept[0].effective = kept[0].permitted = 1U << CAP_SYS_ADMIN | 1U << CAP_SYS_CHROOT;
    return (int)syscall(SYS_capset, &header, kept);
}

void serve_opens(void)
{
    static struct {
        struct open_request request;
        char path[PATH_MAX];
    } message;
    const size_t head = offsetof(__typeof__(message), path);
    sigset_t everything;

    umask(0);
    sigfillset(&everything); /* those of the terminal are for the command */
    if (sigprocmask(SIG_SETMASK, &everything, NULL) < 0 || syscall(SYS_close_range, MOUNTS + 1U, ~0U, 0U) < 0)
        _exit(1);
    if (setns(USERS, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0 || chdir("/") < 0 || keep_capabilities() < 0
        || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NAME, "netsandbox-open") < 0)
        _exit(1);
    for (;;) {
        ssize_t length = recv(CHANNEL, &message, sizeof message, MSG_TRUNC);

        if (length < 0 && errno == EINTR)
            continue;
        if (length <= (ssize_t)head + 1 || (size_t)length > sizeof message || message.path[0] != '/'
            || memchr(message.path, '\0', (size_t)length - head) != (char *)&message + length - 1)
            _exit(1);
        serve_open(&message.request, message.path);
    }
}
