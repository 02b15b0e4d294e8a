#define _GNU_SOURCE
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netlink.h"
#include "plan_reader.h"
#include "process.h"
#include "root.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* The door between its D step and its B step. */
struct door {
    int descriptor;
    sa_family_t family;
    int type;
    uint16_t port;
    int loopback;
    int backlog;
};

static void write_file(const char *path, const char *content)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);

    if (descriptor < 0 || write(descriptor, content, strlen(content)) < 0)
        fail(path);
    close(descriptor);
}

/* user_namespaces(7): an unprivileged process may map its own ids only, and must give up setgroups first. */
static void identity(struct reader *reader)
{
    char line[64];
    uint32_t uid = plan_number(reader);
    uint32_t gid = plan_number(reader);

    write_file("/proc/self/setgroups", "deny");
    snprintf(line, sizeof line, "%u %u 1", uid, uid);
    write_file("/proc/self/uid_map", line);
    snprintf(line, sizeof line, "%u %u 1", gid, gid);
    write_file("/proc/self/gid_map", line);
}

static void mount_step(struct reader *reader)
{
    uint32_t flags = plan_number(reader);
    const char *source = plan_text(reader);
    const char *target = plan_text(reader);
    const char *type = plan_text(reader);
    const char *data = plan_text(reader);
    struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };
    unsigned long how = flags & MOUNT_BIND ? MS_BIND | MS_REC : MS_NOSUID | MS_NODEV;

    if (strcmp(type, "proc") == 0)
        how |= MS_NOEXEC;
    if (strcmp(type, "devpts") == 0)
        how = MS_NOSUID | MS_NOEXEC;
    if (mount(source, target, type, how, data) < 0) {
        if (flags & MOUNT_ATTEMPT)
            return;
        if (flags & MOUNT_OPTIONAL && (errno == ENOENT || errno == ENOTDIR))
            return;
        fail(target);
    }
    if (flags & MOUNT_READ_ONLY
        && syscall(SYS_mount_setattr, AT_FDCWD, target, AT_RECURSIVE, &attributes, sizeof attributes) < 0)
        fail(target);
}

/* Mounts a symbolic link over itself: its target stays, and as a mount point it can be neither removed nor renamed. */
static void link_step(struct reader *reader)
{
    const char *path = plan_text(reader);
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

    if (tree < 0 || syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        fail(path);
    close(tree);
}

#define MAX_WRITABLE 512 /* MAX_WRITABLE of netsandbox/policy/file_rules.py */

/* Each path is cloned with all its submounts, and mounted over itself when the rest is read-only. So read-only mounts
 * within it stay read-only (mount_setattr(2) could not tell them apart), and no locked mount has to be changed. */
static void writable_step(struct reader *reader)
{
    static int places[MAX_WRITABLE];
    static int trees[MAX_WRITABLE];
    struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };
    const unsigned int copy = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH;
    struct stat found;
    size_t count = 0;

    while (reader->left > 0) {
        const char *path = plan_text(reader);

        if (count == MAX_WRITABLE) {
            errno = E2BIG;
            fail("confining writing");
        }
        places[count] = open_place(path);
        if (fstat(places[count], &found) == 0 && S_ISLNK(found.st_mode)) { /* put there since the path was resolved */
            errno = ELOOP;
            fail(path);
        }
        trees[count] = (int)syscall(SYS_open_tree, places[count], "", copy);
        if (trees[count] < 0)
            fail(path);
        count++;
    }
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attributes, sizeof attributes) < 0)
        fail("confining writing");
    while (count-- > 0) {
        if (syscall(SYS_move_mount, trees[count], "", places[count], "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)
            < 0)
            fail("confining writing");
        close(trees[count]);
        close(places[count]);
    }
}

static void folder_step(struct reader *reader)
{
    mode_t mode = (mode_t)plan_number(reader);

    root_folder(plan_text(reader), mode);
}

static void root_link_step(struct reader *reader)
{
    const char *target = plan_text(reader);

    root_link(target, plan_text(reader));
}

static void show_step(struct reader *reader)
{
    uint32_t flags = plan_number(reader);
    const char *source = plan_text(reader);

    root_show(flags, source, plan_text(reader));
}

static void cache_step(struct reader *reader)
{
    const char *lower = plan_text(reader);
    const char *options = plan_text(reader);
    const char *upper = plan_text(reader);

    root_cache(lower, options, upper, plan_text(reader));
}

static void overlay_step(struct reader *reader)
{
    uint32_t flags = plan_number(reader);
    const char *lower = plan_text(reader);
    const char *options = plan_text(reader);

    if (!root_overlay(lower, options, plan_text(reader)) && !(flags & MOUNT_ATTEMPT))
        fail(OVERLAY);
}

static void cover_step(struct reader *reader)
{
    const char *target = plan_text(reader);
    const char *source = plan_text(reader);

    root_cover(target, source, plan_text(reader));
}

static void door_step(struct reader *reader, struct door *door)
{
    door->family = (sa_family_t)plan_number(reader);
    door->type = (int)plan_number(reader);
    door->port = (uint16_t)plan_number(reader);
    door->loopback = (int)plan_number(reader);
    door->backlog = (int)plan_number(reader);
    door->descriptor = socket(door->family, door->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door->descriptor < 0)
        fail("opening a door");
}

static void option_step(struct reader *reader, const struct door *door)
{
    int level = (int)plan_number(reader);
    int name = (int)plan_number(reader);

    if (setsockopt(door->descriptor, level, name, reader->at, (socklen_t)reader->left) < 0)
        fail("setting an option of a door");
}

static void bind_step(struct door *door, struct outcome *outcome)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length = door->family == AF_INET ? sizeof address.v4 : sizeof address.v6;

    memset(&address, 0, sizeof address);
    if (door->family == AF_INET) {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons(door->port);
        address.v4.sin_addr.s_addr = htonl(door->loopback ? INADDR_LOOPBACK : INADDR_ANY);
    } else {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = htons(door->port);
        address.v6.sin6_addr = door->loopback ? in6addr_loopback : in6addr_any;
    }
    if (bind(door->descriptor, &address.any, length) < 0)
        fail("binding a door");
    if (door->backlog && listen(door->descriptor, door->backlog) < 0)
        fail("listening at a door");
    if (outcome->door_count == MAX_DOORS) {
        errno = E2BIG;
        fail("opening a door");
    }
    outcome->doors[outcome->door_count++] = door->descriptor;
}

static void netlink_step(struct reader *reader)
{
    int protocol = (int)plan_number(reader);
    uint32_t acknowledgements = plan_number(reader);

    netlink_replay(protocol, reader->at, reader->left, acknowledgements);
}

static void limit_step(struct reader *reader)
{
    uint32_t resource = plan_number(reader);
    uint64_t low = plan_number(reader);

    limit_add(resource, (uint64_t)plan_number(reader) << 32 | low);
}

static void permit_step(struct reader *reader)
{
    uint32_t rights = plan_number(reader);

    if (reader->left == 0)
        access_permit_all_but_processes(rights);
    while (reader->left > 0)
        access_permit(rights, plan_text(reader));
}

static void step(unsigned char operation, struct reader *reader, struct door *door, struct outcome *outcome)
{
    switch (operation) {
    case 'I':
        identity(reader);
        break;
    case 'M':
        mount_step(reader);
        break;
    case 'L':
        link_step(reader);
        break;
    case 'W':
        writable_step(reader);
        break;
    case 'R':
        root_begin();
        break;
    case 'S':
        folder_step(reader);
        break;
    case 'Y':
        root_link_step(reader);
        break;
    case 'V':
        show_step(reader);
        break;
    case 'C':
        cache_step(reader);
        break;
    case 'U':
        overlay_step(reader);
        break;
    case 'A':
        cover_step(reader);
        break;
    case 'E':
        root_end();
        break;
    case 'K':
        netlink_step(reader);
        break;
    case 'D':
        door_step(reader, door);
        break;
    case 'O':
        option_step(reader, door);
        break;
    case 'B':
        bind_step(door, outcome);
        break;
    case 'Z':
        limit_step(reader);
        break;
    case 'H':
        access_begin(plan_number(reader), 0);
        break;
    case 'P':
        permit_step(reader);
        break;
    case 'F':
        outcome->filter.len = (unsigned short)(reader->left / sizeof(struct sock_filter));
        outcome->filter.filter = (struct sock_filter *)(uintptr_t)reader->at;
        break;
    default:
        errno = EBADMSG;
        fail("reading the plan");
    }
}

void carry_out(const unsigned char *plan, size_t length, struct outcome *outcome)
{
    struct reader all = { .at = plan, .left = length };
    struct reader payload;
    struct door door = { .descriptor = -1 };
    unsigned char operation;

    while (plan_step(&all, &operation, &payload))
        step(operation, &payload, &door, outcome);
}
