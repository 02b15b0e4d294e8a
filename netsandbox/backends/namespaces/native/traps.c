#define _GNU_SOURCE
#include "traps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "channel.h"

#define MAX_CALL 512 /* every number of file_calls.py is below */
#define MAX_ROWS 128
#define MAX_HIDDEN 131072 /* bytes of their names */
#define SEEN 1024 /* a power of two */
#define PAGE 4096UL

/* Linux 6.6: the caller's processor goes on with us at once, and back. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* Nothing is asked of a disk or a server: a hanging file system would hold up every call on files. */
#define LOOK (AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC)

static struct path_row rows[MAX_ROWS];
static uint8_t first_row[MAX_CALL]; /* 1 + index in rows; rows of one call follow one another */
static size_t row_count;
static char hidden[MAX_HIDDEN];
static int listener;
static int root = -1; /* the session's, which all callers share */
static uint32_t unreported;

/* The system is shown everywhere, so reads there need no look. */
static const char *const SHOWN[] = { "/usr/", "/lib", "/etc/", "/proc/", "/sys/", "/dev/", "/bin/", "/sbin/" };

static void read_rows(void)
{
    ssize_t length;

    do
        length = recv(RELAY, rows, sizeof rows, MSG_TRUNC);
    while (length < 0 && errno == EINTR);
    if (length <= 0 || (size_t)length > sizeof rows || (size_t)length % sizeof *rows != 0)
        _exit(1);
    row_count = (size_t)length / sizeof *rows;
    for (size_t number = row_count; number-- > 0;) {
        if (rows[number].call >= MAX_CALL)
            _exit(1);
        first_row[rows[number].call] = (uint8_t)(number + 1);
    }
}

static void read_hidden(void)
{
    ssize_t length;

    do
        length = recv(RELAY, hidden, sizeof hidden, MSG_TRUNC);
    while (length < 0 && errno == EINTR);
    if (length <= 0 || (size_t)length > sizeof hidden || hidden[length - 1] != '\0'
        || (length > 1 && hidden[length - 2] != '\0'))
        _exit(1);
}

static void to_supervisor(struct iovec *parts, size_t count, int flags)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

    while (sendmsg(RELAY, &message, MSG_NOSIGNAL | flags) < 0) {
        if (flags & MSG_DONTWAIT && (errno == EAGAIN || errno == ENOBUFS)) {
            unreported++;
            return;
        }
        if (errno != EINTR)
            _exit(1); /* the supervisor is gone, so we end too */
    }
}

static void pass_on(struct seccomp_notif *call)
{
    char kind = 'T';
    struct iovec parts[] = { { &kind, 1 }, { call, sizeof *call } };

    to_supervisor(parts, 2, 0);
}

static void let_go_on(const struct seccomp_notif *call)
{
    struct seccomp_notif_resp response = { .id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0 && errno != ENOENT && errno != EINTR)
        _exit(1);
}

/* Bytes of the caller's memory up to *size*; they may end at a page that is not there. */
static ssize_t memory(pid_t pid, uint64_t address, void *into, size_t size)
{
    struct iovec here = { into, size };
    struct iovec there = { (void *)(uintptr_t)address, size };

    return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

/* The path at *address*: its length, or 0 for one that is empty or cannot be read, which the kernel refuses too. */
static size_t path_text(pid_t pid, uint64_t address, char *into, size_t size)
{
    size_t length = 0;

    while (address != 0 && length < size) {
        size_t part = PAGE - ((address + length) & (PAGE - 1));
        ssize_t got;
        char *end;

        if (part > 256 && length == 0)
            part = 256; /* most paths are short */
        if (part > size - length)
            part = size - length;
        got = memory(pid, address + length, into + length, part);
        if (got <= 0)
            return 0;
        end = memchr(into + length, '\0', (size_t)got);
        if (end != NULL)
            return (size_t)(end - into);
        length += (size_t)got;
    }
    return 0;
}

static size_t link_text(pid_t pid, const char *what, int number, char *into, size_t size)
{
    char name[64];
    ssize_t length;

    if (number >= 0)
        snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)pid, number);
    else
        snprintf(name, sizeof name, "/proc/%d/%s", (int)pid, what);
    length = readlink(name, into, size - 1);
    if (length <= 0 || (size_t)length >= size - 1)
        return 0;
    into[length] = '\0';
    return (size_t)length;
}

/* The absolute path that the caller means, or 0. */
static size_t full_path(const struct seccomp_notif *call, const struct path_row *row, char *into)
{
    char given[PATH_MAX];
    size_t length = path_text((pid_t)call->pid, call->data.args[row->path], given, sizeof given);
    size_t above = 0;

    if (length == 0)
        return 0;
    if (given[0] != '/') {
        int folder = row->folder == NO_ARGUMENT ? AT_FDCWD : (int)call->data.args[row->folder];

        above = link_text((pid_t)call->pid, "cwd", folder == AT_FDCWD ? -1 : folder, into, PATH_MAX);
        unreported += row->tells && (above == 0 ? errno == ENAMETOOLONG : above + 1 + length >= PATH_MAX);
        if (above == 0 || into[0] != '/' || above + 1 + length >= PATH_MAX)
            return 0;
        into[above++] = '/';
    }
    memcpy(into + above, given, length + 1);
    return above + length;
}

static int begins(const char *path, const char *with)
{
    return strncmp(path, with, strlen(with)) == 0;
}

/* Its folder, in place; *path* is absolute. */
static void cut_name(char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 1 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    path[length] = '\0';
}

/* Opens *path* as the session sees it. */
static int inside(const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static int is_inside(const char *path)
{
    int place = inside(path, 0);

    if (place >= 0)
        close(place);
    return place >= 0;
}

static int is_missing(int number)
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

/* Whether a rule hides *path*, by its name: the session sees something empty there. */
static int is_hidden(const char *path)
{
    for (const char *each = hidden; *each != '\0'; each += strlen(each) + 1) {
        size_t length = strlen(each);

        if (strncmp(path, each, length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return 1;
    }
    return 0;
}

/* Whether *path* is missing in the session's own /tmp or /var/tmp. Programs try a path first and make its folders then,
 * and the host may have folders of the same names. */
static int is_temporary(const char *path)
{
    static const char *const OWN[] = { "/tmp", "/var/tmp" };
    char above[PATH_MAX];
    struct stat found;
    struct stat own;
    int place;
    int is_own = 0;

    if (!begins(path, "/tmp/") && !begins(path, "/var/tmp/"))
        return 0;
    memcpy(above, path, strlen(path) + 1);
    do {
        cut_name(above);
        place = inside(above, 0);
    } while (place < 0 && above[1] != '\0');
    if (place < 0)
        return 0;
    for (size_t number = 0; number < 2 && !is_own; number++) {
        int folder = inside(OWN[number], 0);

        is_own = folder >= 0 && fstat(place, &found) == 0 && fstat(folder, &own) == 0 && found.st_dev == own.st_dev;
        if (folder >= 0)
            close(folder);
    }
    is_own = is_own && !is_read_only(place);
    close(place);
    return is_own;
}

/* Whether a new name in the folder of *path*, or the end of one, is refused. */
static char refused_name(const char *path)
{
    char above[PATH_MAX];
    int folder;
    char why = 0;

    memcpy(above, path, strlen(path) + 1);
    cut_name(above);
    folder = inside(above, 0);
    if (folder < 0)
        return is_missing(errno) && host_writes(above) && !is_temporary(above) ? 'h' : 0;
    if (is_read_only(folder) && host_writes(above))
        why = 'r';
    close(folder);
    return why;
}

/* Whether the session could make *path* itself, such as in its own /tmp: if it is missing there, nothing was refused. */
static int has_own_folder(const char *path)
{
    char above[PATH_MAX];
    int folder;
    int is_own;

    memcpy(above, path, strlen(path) + 1);
    cut_name(above);
    folder = inside(above, 0);
    if (folder < 0)
        return is_temporary(above);
    is_own = !is_read_only(folder);
    close(folder);
    return is_own;
}

/* Whether the session's mounts will refuse to write *path* although the host would not: 'r', 'h' or 0. */
static char refused_write(const char *path, char does, int follow)
{
    int place = is_hidden(path) ? -1 : inside(path, follow ? 0 : O_NOFOLLOW);
    int is_read = place >= 0 && does == 'w' && is_read_only(place);

    if (is_hidden(path))
        return 'd';
    if (place >= 0)
        close(place);
    else if (!is_missing(errno))
        return 0;
    if (place >= 0 && does == 'w')
        return is_read && host_writes(path) ? 'r' : 0;
    if (place >= 0 && (does == 'd' || does == 'e')) /* the kernel says EEXIST */
        return 0;
    if (place < 0 && (does == 'w' || does == 'u'))
        return on_host(path, AT_SYMLINK_NOFOLLOW) && host_writes(path) && !has_own_folder(path) ? 'h' : 0;
    return refused_name(path);
}

static char refused_read(const char *path)
{
    int place;

    if (is_hidden(path))
        return on_host(path, 0) ? 'd' : 0;
    for (size_t number = 0; number < sizeof SHOWN / sizeof *SHOWN; number++)
        if (begins(path, SHOWN[number]))
            return 0;
    place = inside(path, 0);
    if (place >= 0) {
        close(place);
        return 0;
    }
    return is_missing(errno) && on_host(path, 0) ? 'h' : 0;
}

/* What the call does with the path: one of refusal.does, 'e' to make a file that may not exist, 'c' to open one that may
 * not exist, or 0 if it is not looked at. */
static char purpose(const struct seccomp_notif *call, const struct path_row *row, int *follow)
{
    uint64_t flags = row->flags == NO_ARGUMENT ? 0 : call->data.args[row->flags];

    *follow = row->follows;
    switch (row->use) {
    case USE_CHANGE:
        *follow = row->follows && !(flags & AT_SYMLINK_NOFOLLOW);
        return 'w';
    case USE_NAME:
    case USE_REMOVE:
    case USE_FOLDER:
    case USE_EXEC:
        return (char)row->use;
    case USE_CREAT:
        flags = O_CREAT | O_WRONLY | O_TRUNC;
        break;
    case USE_HOW:
        if (memory((pid_t)call->pid, flags, &flags, sizeof flags) != (ssize_t)sizeof flags)
            return 0;
        break;
    default:
        flags = (uint32_t)flags;
        break;
    }
    if (flags & O_PATH)
        return 0;
    *follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    if (flags & O_CREAT)
        return flags & O_EXCL ? 'e' : 'c';
    return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC ? 'w' : 'r';
}

/* A report at the first, second, fourth … time: how many times it stands for, or 0. */
static uint32_t counted(const char *path, char does)
{
    static struct {
        uint64_t key;
        uint32_t times;
    } seen[SEEN];
    uint64_t key = 14695981039346656037ULL ^ (unsigned char)does; /* FNV-1a */
    size_t slot;

    for (; *path != '\0'; path++)
        key = (key ^ (unsigned char)*path) * 1099511628211ULL;
    slot = (key ^ key >> 32) & (SEEN - 1);
    if (seen[slot].key != key) {
        seen[slot].key = key;
        seen[slot].times = 0;
    }
    if (seen[slot].times == UINT32_MAX)
        return 0;
    seen[slot].times++;
    if (seen[slot].times & (seen[slot].times - 1))
        return 0;
    return seen[slot].times == 1 ? 1 : seen[slot].times / 2;
}

static void report(const struct seccomp_notif *call, char why, char does, char *path)
{
    char exe[PATH_MAX];
    char kind = 'F';
    struct refusal refusal = { .why = (uint8_t)why,
                               .does = (uint8_t)does,
                               .call = (uint16_t)call->data.nr,
                               .pid = (int32_t)call->pid,
                               .times = counted(path, does) };
    struct iovec parts[4] = { { &kind, 1 }, { &refusal, sizeof refusal }, { exe, 1 }, { path, strlen(path) + 1 } };
    uint64_t id = call->id;

    if (refusal.times == 0)
        return;
    exe[0] = '\0';
    parts[2].iov_len = link_text((pid_t)call->pid, "exe", -1, exe, sizeof exe) + 1;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
        return; /* the caller is gone, and what was read may be of another process */
    to_supervisor(parts, 4, why == 'o' ? 0 : MSG_DONTWAIT);
}

/* Waits for the supervisor if it is behind: a flood becomes slower, and none of it is missing in the log's count. */
static void report_left_out(void)
{
    char kind = 'U';
    uint32_t count = unreported;
    struct iovec parts[] = { { &kind, 1 }, { &count, sizeof count } };

    unreported = 0;
    to_supervisor(parts, 2, 0);
}

/* Whether a call that nothing refuses changes something: a file must exist for that, and a folder must be missing. */
static int changes(const char *path, char does)
{
    return does == 'w' ? is_inside(path) : does != 'd' || !is_inside(path);
}

static void look(const struct seccomp_notif *call, const struct path_row *row)
{
    char path[PATH_MAX];
    int follow;
    char does = purpose(call, row, &follow);
    char why;

    if (does == 0 || full_path(call, row, path) == 0 || begins(path, "/proc/") || begins(path, "/dev/"))
        return;
    if (root < 0) {
        char name[64];

        snprintf(name, sizeof name, "/proc/%d/root", (int)call->pid);
        root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0) {
            unreported++;
            return;
        }
    }
    if (does == 'r' || does == 'x') {
        why = refused_read(path);
    } else {
        if (does == 'c')
            does = is_inside(path) ? 'w' : 'n';
        why = refused_write(path, does, follow);
        if (!why && row->tells && changes(path, does))
            why = 'o';
    }
    if (why)
        report(call, why, does == 'e' ? 'n' : does, path);
}

static void receive(struct seccomp_notif *call)
{
    struct pollfd watched = { .fd = listener, .events = POLLIN };

    for (;;) {
        memset(call, 0, sizeof *call);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, call) == 0)
            return;
        if (errno != EINTR && errno != ENOENT)
            _exit(1);
        if (poll(&watched, 1, 0) > 0 && !(watched.revents & POLLIN))
            for (;;) /* the last process is gone; the supervisor ends us after it has read our reports */
                pause();
    }
}

static int receive_listener(int source)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    char kind;
    struct iovec vector = { &kind, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    struct cmsghdr *header;
    ssize_t length;
    int found;

    do
        length = recvmsg(source, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    header = length == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof found))
        _exit(1); /* the session was not set up */
    memcpy(&found, CMSG_DATA(header), sizeof found);
    close(source);
    return found;
}

void serve_traps(int source)
{
    struct seccomp_notif call;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NAME, "netsandbox-trap") < 0)
        _exit(1);
    if (syscall(SYS_close_range, 0U, CHANNEL, 0U) < 0 || chdir("/") < 0)
        _exit(1);
    read_rows();
    read_hidden();
    listener = receive_listener(source);
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* EINVAL before Linux 6.6 */
    for (;;) {
        size_t row;

        receive(&call);
        row = call.data.nr >= 0 && call.data.nr < MAX_CALL ? first_row[call.data.nr] : 0;
        if (row == 0) {
            pass_on(&call);
            continue;
        }
        for (row--; row < row_count && rows[row].call == call.data.nr; row++)
            look(&call, &rows[row]);
        if (unreported)
            report_left_out();
        let_go_on(&call);
    }
}
