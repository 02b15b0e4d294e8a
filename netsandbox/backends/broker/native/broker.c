/* netsandbox-broker: starts the command where no namespace can be made, and makes its socket calls.
 *
 *   supervisor -- posix_spawn --> the keeper -- fork --> the broker -- fork --> the command
 *                                                                  \----> the binder (binder.h), the spawner (spawner.h)
 *
 * The command runs in the host's namespaces, so the kernel does not end its processes with it. Keeper and broker are both
 * subreapers: whatever the session leaves behind becomes a child of one of them, and is killed when the command has ended,
 * or when the supervisor, the broker or the keeper is gone (INV-10). No two of these three depend on one another to see it.
 *
 * Arguments: the command and its arguments. Environment: the command's. Descriptor 3: the channel (channel.h). Descriptor 4:
 * the relay (questions.h). */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "binder.h"
#include "calls.h"
#include "channel.h"
#include "datagrams.h"
#include "descendants.h"
#include "ending.h"
#include "descriptors.h"
#include "jail.h"
#include "process.h"
#include "questions.h"
#include "rendezvous.h"
#include "setup.h"
#include "spawner.h"
#include "terminal.h"
#include "trap_pool.h"
#include "waiting_connect.h"

#define SAME_SIGNAL 500  /* milliseconds between our copy of a signal and the supervisor's message about it */
#define ENDED 20         /* milliseconds between looks whether a process that starts has ended */
#define SWEEP 2000       /* milliseconds between sweeps (socket_table.h) */
#define KEEPER_GONE SIGUSR2
#define TRUNCATE (1U << 14) /* linux/landlock.h, ABI 3 */

static pid_t keeper;
static int terminals[2]; /* ours, the spawner's: the session may not open /dev/ptmx itself */

/* Becomes the command. The table of descriptors is shared with the broker until it has the listener: the filter traps
 * sendmsg, so the listener cannot be sent. *report* ends at exec, or has the errno before. */
static noreturn void become(char **command, const sigset_t *mask, int handshake, int report)
{
    enum needs needs;
    int keeps_signals;
    int number;
    char go;

    if (setup.working != NULL && chdir(setup.working) < 0 && chdir("/") < 0)
        fail("entering the working directory");
    /* Files of a process that is not dumpable belong to root. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        fail("oom_score_adj");
    die_first();
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        fail("oom_score_adj");
    access_rules(&keeps_signals);
    needs = keeps_signals ? NEEDS_NOTHING : access_handles(TRUNCATE) ? NEEDS_SIGNALS : NEEDS_TRUNCATION;
    give_up_rights(!keeps_signals);
    fork_binder();
    number = install_filter(&setup.filters[needs]);
    if (write(handshake, &number, sizeof number) != (ssize_t)sizeof number || read(handshake, &go, 1) != 1)
        _exit(1);
    if (syscall(SYS_close_range, RELAY + 1U, ~0U, CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) < 0)
        fail("leaving the broker's descriptors");
    if (write(handshake, "D", 1) != 1)
        _exit(1);
    keep_descriptors_in_reserve();
    limits_set();
    fork_spawner(command, terminals[1]);
    execute(command, mask);
    number = errno;
    _exit(write(report, &number, sizeof number) == (ssize_t)sizeof number ? 127 : 1);
}

/* Receives from a process that starts. It shares our descriptors, so the other end stays open when it ends: its own end is
 * looked for too. Returns whether everything came. */
static int hear(int socket, pid_t child, void *into, size_t size)
{
    struct pollfd watched = { .fd = socket, .events = POLLIN };
    siginfo_t ended = { .si_pid = 0 };

    while (poll(&watched, 1, ENDED) <= 0 && ended.si_pid == 0)
        if (waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT) < 0)
            return 0;
    return recv(socket, into, size, MSG_DONTWAIT) == (ssize_t)size;
}

/* Starts the command, and takes its listener. Returns its pid. */
static pid_t start(char **command, const sigset_t *mask)
{
    int ends[2];
    int report[2];
    int number;
    char done;
    long pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 || pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
        fail("making a pipe");
    if (channel_descriptors(CHANNEL, 'L', report, 1) < 0)
        fail("passing the report out");
    close(report[0]);
    pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, 0UL);
    if (pid < 0)
        fail("forking the command");
    if (pid == 0)
        become(command, mask, ends[1], report[1]);
    if (!hear(ends[0], (pid_t)pid, &number, sizeof number))
        _exit(1); /* it has reported why */
    take_listener(number);
    if (write(ends[0], "G", 1) != 1 || !hear(ends[0], (pid_t)pid, &done, 1))
        _exit(1);
    close(ends[0]);
    close(ends[1]);
    close(report[1]);
    return (pid_t)pid;
}

/* When each signal last reached this process, in milliseconds. We are in the caller's process group: a signal to that
 * group (from the terminal, timeout(1), a service manager) reaches us, and the command too unless it has left the group. */
static int64_t received[NSIG];

static void signal_all(int number)
{
    signal_descendants(number);
}

/* After the command's end it is for those that are left. */
static void pass_on(int number, pid_t command)
{
    if (number <= 0 || number >= NSIG)
        return;
    if (number == SIGKILL)
        end_at_once();
    if (received[number] && now() - received[number] < SAME_SIGNAL
        && (has_command_ended() || getpgid(command) == getpgid(0)))
        received[number] = 0;
    else if (has_command_ended())
        signal_all(number);
    else
        kill(command, number);
}

/* Nobody waits for the session any more. */
static noreturn void end_untold(void)
{
    kill_descendants();
    _exit(0);
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
        kill_descendants();
        channel_number('S', status);
        _exit(0);
    }
}

static void read_signals(int signals, pid_t command)
{
    struct signalfd_siginfo info;

    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == KEEPER_GONE && getppid() != keeper)
            end_untold();
        if (info.ssi_signo < NSIG)
            received[info.ssi_signo] = now();
    }
    reap(command);
}

static noreturn void serve(int signals, pid_t command)
{
    struct pollfd watched[4] = { { .fd = signals, .events = POLLIN },
                                 { .fd = CHANNEL, .events = POLLIN },
                                 { .fd = sweep_wish, .events = POLLIN },
                                 { .fd = terminals[0], .events = POLLIN } };
    int64_t swept = now();
    eventfd_t unused;

    for (;;) {
        int number;

        if (poll(watched, 4, until_over(SWEEP)) < 0)
            watched[1].revents = watched[3].revents = 0;
        eventfd_read(sweep_wish, &unused);
        if (now() - swept >= SWEEP && is_sweep_due()) { /* children that end all the time must not put it off */
            sweep_sockets(0);
            swept = now();
        }
        if (watched[3].revents & POLLIN)
            give_terminal(terminals[0]);
        else if (watched[3].revents)
            watched[3].fd = -1; /* the spawner is gone */
        read_signals(signals, command);
        if (watched[1].revents & POLLIN && recv(CHANNEL, &number, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
            if (channel_wish(&number) == 'K')
                pass_on(number, command);
            else
                ask_to_end(signal_all);
        } else if (watched[1].revents) {
            end_untold();
        }
    }
}

static void *serve_traps(void *unused)
{
    serve_pool(serve_call);
    return unused;
}

static noreturn void broker(char **command, const sigset_t *mask)
{
    sigset_t everything;
    pthread_t thread;
    pid_t pid;
    int signals;
    int sockets;

    if (prctl(PR_SET_PDEATHSIG, KEEPER_GONE) < 0 || getppid() != keeper || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0
        || prctl(PR_SET_DUMPABLE, 0) < 0)
        fail("hardening the broker");
    take_descriptors();
    keep_spare_descriptors();
    set_up();
    channel_number('P', (int)getpid());
    sockets_begin();
    rendezvous_begin();
    binder_begin();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, terminals) < 0)
        fail("making a pipe");
    sigfillset(&everything);
    signals = signalfd(-1, &everything, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        fail("making a signalfd");
    sockets = setup.sockets == NULL ? -1 : open(setup.sockets, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (sockets < 0)
        fail("opening the folder of sockets");
    channel_await_go();
    pid = start(command, mask);
    close(terminals[1]);
    if (syscall(SYS_close_range, 0U, 2U, 0U) < 0) /* a reader of the command's output must see its end, not ours */
        fail("closing standard descriptors");
    umask(077);
    if (fchdir(sockets) < 0) /* where Unix sockets are bound (unix_sockets.c) */
        fail("entering the folder of sockets");
    close(sockets);
    waiting_begin();
    datagrams_begin();
    if (pthread_create(&thread, NULL, serve_traps, NULL) != 0)
        fail("serving the command's calls");
    serve(signals, pid);
}

/* Waits for the broker's end, or the supervisor's, and leaves nothing behind. */
static noreturn void keep(pid_t child)
{
    struct pollfd watched[2] = { { .fd = CHANNEL }, { .events = POLLIN } }; /* of the channel only its end matters */
    struct signalfd_siginfo info;
    sigset_t ended;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    watched[1].fd = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    /* A signal that kills the caller's process group gets the supervisor and the broker at once, so we leave that group. */
    if (setsid() < 0 || prctl(PR_SET_NAME, "netsandbox-keep") < 0 || watched[1].fd < 0 || close(RELAY) < 0
        || syscall(SYS_close_range, 0U, 2U, 0U) < 0)
        kill(child, SIGKILL);
    while (waitpid(child, NULL, WNOHANG) != child) {
        if (poll(watched, 2, -1) < 0 && errno != EINTR)
            break;
        if (watched[0].revents)
            break;
        while (read(watched[1].fd, &info, sizeof info) > 0)
            ;
    }
    kill_descendants();
    _exit(0);
}

int main(int argc, char **argv)
{
    sigset_t everything;
    sigset_t mask;
    pid_t child;

    if (argc < 2 || syscall(SYS_close_range, RELAY + 1U, ~0U, 0U) < 0)
        return 1;
    sigfillset(&everything);
    if (sigprocmask(SIG_SETMASK, &everything, &mask) < 0)
        fail("blocking signals");
    keeper = getpid();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        fail("becoming a subreaper");
    child = fork();
    if (child < 0)
        fail("forking the broker");
    if (child == 0)
        broker(argv + 1, &mask);
    keep(child);
}
