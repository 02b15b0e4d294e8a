#include "binder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caller.h"
#include "channel.h"
#include "trap_pool.h"

#ifndef SYS_fsopen
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#define FSCONFIG_CREATE 6

static int binder = -1;

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
    if (send_descriptors(0, &error, sizeof error, NULL, 0) < 0 || error)
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
        if (send_descriptors(0, &error, sizeof error, &made, made >= 0) < 0)
            _exit(1);
        if (made >= 0)
            close(made);
    }
}

static void start(const struct seccomp_notif *call)
{
    int ends[2];
    int32_t error;
    int none;
    int process = (int)syscall(SYS_pidfd_open, process_of((pid_t)call->pid), 0U);

    if (process < 0)
        return;
    if (is_waiting(call) && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
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

int has_binder(const struct seccomp_notif *call)
{
    if (binder < 0)
        start(call);
    return binder >= 0;
}

int bind_apart(int socket, const union address *address, socklen_t length)
{
    int32_t error = EACCES;
    int made = -1;

    if (send_descriptors(binder, address, length, &socket, 1) < 0
        || receive_one(binder, &error, sizeof error, &made) != (ssize_t)sizeof error)
        error = EACCES;
    errno = error ? error : made < 0 ? EMFILE : 0;
    return error ? -1 : made;
}
