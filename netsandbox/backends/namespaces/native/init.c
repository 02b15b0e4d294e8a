/* netsandbox-init: makes the namespaces, carries out the plan, and is PID 1 of the session.
 *
 *   supervisor -- posix_spawn --> this program -- clone --> PID 1 (same program) -- fork --> the command
 *                                                                                      \----> the spawner (spawner.h)
 *
 * The clone uses CLONE_PARENT, so PID 1 is the supervisor's own child. This first process stays outside, as the one that
 * receives trapped calls (traps.h). PID 1 keeps four promises: it reaps, it forwards the signals that the supervisor
 * reports, it ends the session (ending.h), and it dies with the supervisor (INV-10). It has no signal handlers: every signal is blocked and read from a signalfd.
 *
 * Arguments: the command and its arguments. Environment: the command's. Descriptor 3: the channel. Descriptor 4 leads
 * from the process of traps.h to the supervisor. Without arguments it is another process: opener.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "descriptors.h"
#include "ending.h"
#include "jail.h"
#include "opener.h"
#include "plan.h"
#include "plan_reader.h"
#include "process.h"
#include "root.h"
#include "spawner.h"
#include "traps.h"

#define COVER_CHECK 1000   /* milliseconds between looks at the covers, without inotify */
#define SAME_SIGNAL 500 /* milliseconds between our copy of a signal and the supervisor's message about it */

/* Becomes the command. The channel and all descriptors but 0, 1 and 2 close at exec, the report's among them: then the
 * supervisor sees its end, or before it the errno of an exec that failed. */
static noreturn void become(char **command, const struct outcome *outcome, const sigset_t *mask, int observer)
{
    int passed[2];
    int report[2];
    int number;

    give_up_rights(0);
    passed[0] = install_filter(&outcome->filter);
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
        fail("making a pipe");
    passed[1] = report[0];
    if (channel_descriptors(CHANNEL, 'L', passed, 2) < 0)
        fail("passing the listener out");
    if (channel_descriptors(observer, 'L', passed, 1) < 0)
        fail("passing the listener to the observer");
    keep_descriptors_in_reserve();
    limits_set();
    fork_spawner(command, -1);
    execute(command, mask);
    number = errno;
    _exit(write(report[1], &number, sizeof number) == sizeof number ? 127 : 1);
}

static void signal_all(int number)
{
    kill(-1, number);
}

/* Reaps every child that has ended, and leaves if it was the last: who has lost its parent is our child. */
static void reap(pid_t command)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == command && !has_command_ended()) {
            command_ended(status);
            ask_to_end(signal_all);
        }
    if (is_over(pid < 0 && errno == ECHILD, &status)) {
        channel_number('S', status);
        _exit(0); /* the kernel kills who is left */
    }
}

/* When each signal last reached this process from outside, in milliseconds. We are in the caller's process group: a
 * signal to that group (from the terminal, timeout(1), a service manager) reaches us, and the command too unless it has
 * left the group. */
static int64_t received[NSIG];

/* Forwards a signal that only the supervisor got; one for the whole group has reached the command already. After the
 * command's end it is for those that are left. */
static void pass_on(int number, pid_t command)
{
    if (number <= 0 || number >= NSIG)
        return;
    if (number == SIGKILL)
        end_at_once();
    if (received[number] && now() - received[number] < SAME_SIGNAL
        && (has_command_ended() || getpgid(command) == getpgid(0)))
        received[number] = 0;
    else
        kill(has_command_ended() ? -1 : command, number);
}

/* A socket stays in the network it was made in: with one of ours the supervisor reaches listeners in the session, or
 * queries its sockets. */
static void make_socket(int family)
{
    int made = family == AF_NETLINK ? socket(family, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
                                    : socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (made < 0 || channel_descriptors(CHANNEL, 'N', &made, 1) < 0)
        channel_number('N', errno);
    if (made >= 0)
        close(made);
}

static void obey(pid_t command)
{
    int number;

    switch (channel_wish(&number)) {
    case 'N':
        make_socket(number);
        break;
    case 'T':
        ask_to_end(signal_all);
        break;
    default:
        pass_on(number, command);
    }
}

static void read_signals(int signals, pid_t command)
{
    struct signalfd_siginfo info;

    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_pid == 0 && info.ssi_signo < NSIG) /* no process inside has pid 0 */
            received[info.ssi_signo] = now();
    }
    reap(command);
}

static noreturn void serve(int signals, int covers, pid_t command)
{
    struct pollfd watched[3] = { { .fd = signals, .events = POLLIN },
                                 { .fd = CHANNEL, .events = POLLIN },
                                 { .fd = covers, .events = POLLIN } };

    for (;;) {
        if (poll(watched, 3, until_over(covers == COVERS_POLLED ? COVER_CHECK : -1)) < 0 && errno != EINTR)
            _exit(1);
        if (covers == COVERS_POLLED || watched[2].revents)
            covers_restore(covers);
        read_signals(signals, command);
        if (watched[1].revents) /* ends us if the supervisor is gone: the kernel then kills the session */
            obey(command);
    }
}

/* Enters the working directory again through the new mounts: the old descriptor would see past them. A directory that
 * is gone, or hidden now, becomes the root. */
static void return_to(const char *folder)
{
    if (folder != NULL && chdir(folder) == 0)
        return;
    if (chdir("/") < 0)
        fail("leaving the working directory");
}

static noreturn void session(char **command, const sigset_t *mask, int observer)
{
    struct outcome outcome = { .door_count = 0 };
    const unsigned char *plan;
    size_t length;
    static char here[PATH_MAX];
    const char *folder = getcwd(here, sizeof here);
    sigset_t everything;
    pid_t pid;
    int signals;
    int covers;

    take_descriptors();
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        fail("making mounts private");
    die_first();
    length = read_plan(&plan);
    carry_out(plan, length, &outcome);
    return_to(folder);
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        fail("hardening init");
    if (channel_descriptors(CHANNEL, 'D', outcome.doors, outcome.door_count) < 0)
        fail("passing the doors out");
    for (size_t door = 0; door < outcome.door_count; door++)
        close(outcome.doors[door]);
    sigfillset(&everything);
    signals = signalfd(-1, &everything, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        fail("making a signalfd");
    covers = covers_watch();
    channel_await_go();
    pid = fork();
    if (pid < 0)
        fail("forking the command");
    if (pid == 0)
        become(command, &outcome, mask, observer);
    close(observer);
    if (syscall(SYS_close_range, 0U, 2U, 0U) < 0) /* a reader of the command's output must see its end, not ours */
        fail("closing standard descriptors");
    serve(signals, covers, pid);
}

int main(int argc, char **argv)
{
    const unsigned long namespaces = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC;
    sigset_t everything;
    sigset_t mask;
    int ends[2] = { -1, -1 }; /* for the listener: ours, the session's */
    long pid;

    if (argc < 2)
        serve_opens();
    if (syscall(SYS_close_range, RELAY + 1U, ~0U, 0U) < 0)
        return 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        fail("connecting the observer");
    sigfillset(&everything);
    if (sigprocmask(SIG_SETMASK, &everything, &mask) < 0)
        fail("blocking signals");
    pid = syscall(SYS_clone, namespaces | CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0UL);
    if (pid < 0)
        fail("creating namespaces");
    if (pid == 0) {
        close(RELAY);
        close(ends[0]);
        session(argv + 1, &mask, ends[1]);
    }
    channel_number('P', (int)pid);
    close(ends[1]);
    serve_traps(ends[0]);
}
