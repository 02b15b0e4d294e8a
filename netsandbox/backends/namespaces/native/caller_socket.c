#include "caller_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caller.h"
#include "trap_pool.h"
#include "traps.h"

#define SIOCGSKNS_REQUEST 0x894C
#ifndef SO_NETNS_COOKIE /* Linux 5.14 */
#define SO_NETNS_COOKIE 71
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* The descriptor of the process is kept for its next call. One that is gone is never mistaken: only what was opened while
 * the caller waited is kept, and before Linux 6.9, where a thread is reached through its process, only a process's own. */
int caller_socket(const struct seccomp_notif *call, int number)
{
    static _Thread_local int process = -1;
    static _Thread_local pid_t known;
    pid_t pid = (pid_t)call->pid;
    int copy;
    int error;

    for (int turn = 0; turn < 2; turn++) {
        if (process < 0 || known != pid) {
            if (process >= 0)
                close(process);
            known = pid;
            process = (int)syscall(SYS_pidfd_open, pid, PIDFD_THREAD);
            if (process < 0 && errno == EINVAL) {
                pid_t its = process_of(pid);

                process = (int)syscall(SYS_pidfd_open, its, 0U);
                known = its == pid ? pid : 0;
            }
            if (process < 0)
                return -1;
        }
        copy = (int)syscall(SYS_pidfd_getfd, process, number, 0U);
        error = copy < 0 ? errno : 0;
        if (error != ESRCH && is_waiting(call)) {
            errno = error;
            return copy;
        }
        if (copy >= 0)
            close(copy);
        close(process);
        process = -1;
    }
    errno = ESRCH;
    return -1;
}

/* Whether the socket is of the caller's network, which all callers share. */
static int is_of_callers_network(const struct seccomp_notif *call, int copy)
{
    static struct stat network;
    static int has_network;
    struct stat its;
    int space;

    if (!has_network) {
        char name[64];

        snprintf(name, sizeof name, "/proc/%d/ns/net", (int)call->pid);
        if (stat(name, &network) < 0 || !is_waiting(call))
            return 0;
        has_network = 1;
    }
    space = ioctl(copy, SIOCGSKNS_REQUEST);
    if (space < 0)
        return 0;
    if (fstat(space, &its) < 0)
        its.st_ino = 0;
    close(space);
    return its.st_ino == network.st_ino && its.st_dev == network.st_dev;
}

/* The kernel gives each network a number that no other gets. */
int is_of_network(const struct seccomp_notif *call, int copy)
{
    static uint64_t known;
    uint64_t its = 0;
    socklen_t length = sizeof its;

    if (getsockopt(copy, SOL_SOCKET, SO_NETNS_COOKIE, &its, &length) < 0)
        its = 0;
    if (known != 0 && its != 0)
        return its == known;
    if (!is_of_callers_network(call, copy))
        return 0;
    known = its;
    return 1;
}
