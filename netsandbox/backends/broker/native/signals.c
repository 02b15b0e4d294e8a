#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caller.h"
#include "calls.h"
#include "descendants.h"
#include "trap_pool.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* Those of process group *group*; 0: all but the caller. */
static int signal_many(pid_t group, pid_t caller, int number)
{
    size_t count;
    pid_t *below = descendants(&count);
    int error = ESRCH;

    for (size_t each = 0; below != NULL && each < count; each++)
        if (group == 0 ? below[each] != caller : getpgid(below[each]) == group) {
            int failed = signal_descendant(below[each], number);

            error = failed == 0 || error == 0 ? 0 : failed;
        }
    free(below);
    return error;
}

/* The process of a pidfd of the caller, or 0. */
static pid_t process_behind(const struct seccomp_notif *call, int descriptor)
{
    char path[64];
    char line[128];
    int pid = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)call->pid, descriptor);
    file = fopen(path, "re");
    while (file != NULL && pid == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Pid: %d", &pid) != 1)
            pid = 0;
    if (file != NULL)
        fclose(file);
    return (pid_t)pid;
}

static int send_to(const struct seccomp_notif *call, pid_t caller, pid_t pid)
{
    int number = (int)call->data.args[1];

    if (pid > 0)
        return signal_descendant(pid, number);
    if (pid == -1)
        return signal_many(0, caller, number);
    return signal_many(pid == 0 ? getpgid(caller) : -pid, caller, number);
}

/* A thread of another process is signalled as that process: threads have no descriptors before Linux 6.9, and a number may
 * be another's by now. */
static int signal_thread(pid_t process, pid_t thread, int number)
{
    if (process <= 0 || thread <= 0)
        return EINVAL;
    return process_of(thread) == process ? signal_descendant(process, number) : ESRCH;
}

/* A process or thread of the session? */
static int is_inside(pid_t pid, pid_t caller)
{
    pid_t process = pid > 0 ? process_of(pid) : 0;

    return process > 0 && (process == caller || is_descendant(process));
}

/* A call that names a process by number and does something else to it than a signal. It goes on for those of the session.
 * -1, or an errno. */
static int judge_target(pid_t pid, pid_t caller)
{
    return pid == 0 || is_inside(pid, caller) ? -1 : EPERM;
}

void serve_signal(const struct seccomp_notif *call)
{
    pid_t caller = process_of((pid_t)call->pid);
    pid_t target = (pid_t)call->data.args[0];
    int error;

    switch (call->data.nr) {
    case SYS_kill:
        error = target == caller ? -1 : send_to(call, caller, target);
        break;
    case SYS_tgkill:
        error = target == caller ? -1 : signal_thread(target, (pid_t)call->data.args[1], (int)call->data.args[2]);
        break;
    case SYS_tkill:
        error = process_of(target) == caller ? -1 : signal_thread(process_of(target), target, (int)call->data.args[1]);
        break;
    case SYS_pidfd_send_signal:
        target = process_behind(call, (int)call->data.args[0]);
        error = target > 0 ? signal_descendant(target, (int)call->data.args[1]) : EBADF;
        break;
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
        error = target == caller ? -1 : EPERM;
        break;
    case SYS_prlimit64:
    case SYS_sched_setparam:
    case SYS_sched_setscheduler:
    case SYS_sched_setaffinity:
    case SYS_sched_setattr:
        error = judge_target(target, caller);
        break;
    case SYS_setpriority:
    case SYS_ioprio_set:
        error = judge_target((pid_t)call->data.args[1], caller);
        break;
    case SYS_fcntl: /* F_SETOWN */
        error = judge_target((pid_t)call->data.args[2], caller);
        break;
    default:
        error = EPERM;
    }
    if (caller <= 0 || !is_waiting(call))
        error = EPERM;
    if (error < 0)
        let_go_on(call); /* a process may do to itself what it likes; the number is no pointer */
    else
        answer(call, error, 0);
}
