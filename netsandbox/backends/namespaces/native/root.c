#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "channel.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

#ifndef STATX_ATTR_MOUNT_ROOT /* musl's <sys/stat.h> has only some of the attributes */
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

#ifndef OVERLAYFS_SUPER_MAGIC
#define OVERLAYFS_SUPER_MAGIC 0x794c7630
#endif

#define HOST "/.host"
#define COVERS "/.covers" /* the links that are mounted elsewhere */
#define BASE "/proc" /* exists everywhere; the tmpfs leaves it again when it becomes the root */

static int opened(const char *path)
{
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_NO_SYMLINKS };

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

int open_place(const char *path)
{
    struct stat found;
    int place = opened(path);

    if (place >= 0 && fstat(place, &found) == 0 && S_ISLNK(found.st_mode)) {
        errno = ELOOP;
        fail(path);
    }
    if (place < 0)
        fail(path);
    return place;
}

void root_begin(void)
{
    if (mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m") < 0)
        fail("mounting the session's root");
    if (mkdir(BASE HOST, 0755) < 0 || syscall(SYS_pivot_root, BASE, BASE HOST) < 0 || chdir("/") < 0)
        fail("entering the session's root");
}

/* The folder that holds the last name of *path*, opened; folders that are missing on the way are made. *last* is the
 * name itself. */
static int folder_above(const char *path, const char **last)
{
    char name[NAME_MAX + 1];
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (;;) {
        size_t length;
        int next;

        path += strspn(path, "/");
        length = strcspn(path, "/");
        if (folder < 0 || length > NAME_MAX)
            fail(path);
        if (path[length] == '\0') {
            *last = path;
            return folder;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        if (mkdirat(folder, name, 0755) < 0 && errno != EEXIST && errno != EROFS)
            fail(path);
        next = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            fail(path);
        close(folder);
        folder = next;
        path += length;
    }
}

void root_folder(const char *path, mode_t mode)
{
    const char *name;
    int folder = folder_above(path, &name);

    if (mkdirat(folder, name, mode) < 0 && errno != EEXIST)
        fail(path);
    close(folder);
}

void root_link(const char *target, const char *path)
{
    const char *name;
    int folder = folder_above(path, &name);

    if (symlinkat(target, folder, name) < 0 && errno != EEXIST)
        fail(path);
    close(folder);
}

static void make_point(const char *path, int is_folder)
{
    const char *name;
    int folder = folder_above(path, &name);

    if (is_folder) {
        if (mkdirat(folder, name, 0755) < 0 && errno != EEXIST)
            fail(path);
    } else {
        int made = openat(folder, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (made < 0 && errno != EEXIST)
            fail(path);
        if (made >= 0)
            close(made);
    }
    close(folder);
}

void root_show(unsigned int flags, const char *source, const char *target)
{
    const unsigned int copy = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH;
    struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };
    struct stat found;
    int place;
    int tree;
    int from = opened(source);

    if (from < 0 && flags & SHOW_OPTIONAL && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES))
        return;
    if (from < 0 || fstat(from, &found) < 0)
        fail(target);
    tree = (int)syscall(SYS_open_tree, from, "", copy);
    if (tree < 0)
        fail(target);
    if (flags & SHOW_READ_ONLY
        && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) < 0)
        fail(target);
    if (flags & SHOW_MAKE)
        make_point(target, S_ISDIR(found.st_mode));
    place = open_place(target);
    if (syscall(SYS_move_mount, tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        fail(target);
    close(place);
    close(tree);
    close(from);
}

int root_overlay(const char *lower, const char *options, const char *target)
{
    struct statfs found;
    int from = opened(lower);
    int is_mounted
        = from >= 0 && fchdir(from) == 0 && mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options) == 0;
    int error = errno;

    if (is_mounted) {
        int place = open_place(target);

        errno = ELOOP;
        if (fstatfs(place, &found) < 0 || found.f_type != OVERLAYFS_SUPER_MAGIC)
            fail(OVERLAY);
        close(place);
    }
    if (from >= 0)
        close(from);
    if (chdir("/") < 0)
        fail(OVERLAY);
    errno = error;
    return is_mounted;
}

void root_cache(const char *lower, const char *options, const char *upper, const char *target)
{
    make_point(target, 1);
    if (!root_overlay(lower, options, target))
        root_show(0, upper, target);
}

/* A cover, to be put back if the host replaces the file below, which detaches it. */
struct cover {
    const char *path; /* in the plan */
    int link;
    int watch;
};

static struct cover covers[MAX_COVERS];
static size_t cover_count;

/* Mounts the link over *place*; 0 if the kernel refuses. */
static int put(int link, int place)
{
    int tree = (int)syscall(SYS_open_tree, link, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    int done = tree >= 0
        && syscall(SYS_move_mount, tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;

    if (tree >= 0)
        close(tree);
    return done;
}

void root_cover(const char *target, const char *source, const char *path)
{
    char name[sizeof COVERS + 16];
    int place = opened(path);
    struct cover *cover = &covers[cover_count];

    if (place < 0)
        fail(path);
    if (cover_count == MAX_COVERS) {
        errno = E2BIG;
        fail(path);
    }
    snprintf(name, sizeof name, COVERS "/%zu", cover_count);
    if ((cover_count == 0 && mkdir(COVERS, 0755) < 0) || symlink(target, name) < 0)
        fail(path);
    cover->path = path;
    cover->link = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (cover->link >= 0 && put(cover->link, place))
        cover_count++;
    else {
        if (cover->link >= 0)
            close(cover->link);
        root_show(SHOW_READ_ONLY, source, path);
        if (unlink(name) < 0 || (cover_count == 0 && rmdir(COVERS) < 0))
            fail(path);
    }
    close(place);
}

int covers_watch(void)
{
    const uint32_t events = IN_MOVED_TO | IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW;
    char folder[PATH_MAX];
    int watch;

    if (cover_count == 0)
        return COVERS_NONE;
    watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    for (size_t number = 0; watch >= 0 && number < cover_count; number++) {
        struct cover *cover = &covers[number];
        const char *name = strrchr(cover->path, '/') + 1;
        size_t length = (size_t)(name - cover->path);

        if (length >= sizeof folder)
            continue;
        memcpy(folder, cover->path, length);
        folder[length] = '\0';
        cover->watch = inotify_add_watch(watch, folder, events);
    }
    return watch < 0 ? COVERS_POLLED : watch;
}

/* Puts the cover back if it is off. */
static void put_back(const struct cover *cover)
{
    struct statx found;
    int place = opened(cover->path);

    if (place >= 0 && statx(place, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_INO, &found) == 0
        && found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT && !(found.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        put(cover->link, place);
    if (place >= 0)
        close(place);
}

/* Looks at the covers that an event is about; at all of them if events were lost. */
static void look_at(const struct inotify_event *event, const char *name)
{
    for (size_t number = 0; number < cover_count; number++) {
        const char *covered = strrchr(covers[number].path, '/') + 1;

        if (event->mask & IN_Q_OVERFLOW
            || (event->wd == covers[number].watch && event->len && strcmp(name, covered) == 0))
            put_back(&covers[number]);
    }
}

void covers_restore(int watch)
{
    static char events[16384] __attribute__((aligned(8)));
    ssize_t length;

    while (watch >= 0 && (length = read(watch, events, sizeof events)) > 0) {
        struct inotify_event event;

        for (ssize_t at = 0; at < length; at += (ssize_t)(sizeof event + event.len)) {
            memcpy(&event, events + at, sizeof event);
            look_at(&event, events + at + sizeof event);
        }
    }
    for (size_t number = 0; watch < 0 && number < cover_count; number++)
        put_back(&covers[number]);
}

void root_end(void)
{
    struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };

    if (umount2(HOST, MNT_DETACH) < 0 || rmdir(HOST) < 0)
        fail("leaving the host's root");
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes) < 0)
        fail("closing the session's root");
}
