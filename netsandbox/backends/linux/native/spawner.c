#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "terminal.h"

#define MAKERS (CHANNEL + 1U)
#define PASSED 4  /* the client, and the descriptors 0, 1 and 2 */
#define NEEDED 10 /* descriptors: 0 to 3, those passed, and both ends of a terminal */

static struct {
    pid_t pid;
    int client; /* -1: it has left */
    int has_terminal;
} spawned[MAX_SPAWNED];
static size_t spawned_count;
static size_t most; /* at the same time: each keeps the descriptor of its client */
static char request[MAX_SPAWN];
static char *words[MAX_WORDS + 1];

void execute(char **program, const sigset_t *mask)
{
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return;
    if (sigprocmask(SIG_SETMASK, mask, NULL) < 0)
        return;
    execvp(program[0], program);
}

static void reply(int client, char kind, int number, int descriptor)
{
    char record[1 + sizeof number];

    record[0] = kind;
    memcpy(record + 1, &number, sizeof number);
    send_descriptors(client, record, sizeof record, &descriptor, descriptor >= 0); /* a client that left needs no reply */
}

/* The request's length, or -1 for one that is not whole; then *passed* is closed. */
static ssize_t receive(int supervisor, int passed[PASSED])
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * PASSED)];
    } control;
    struct iovec vector = { request, sizeof request };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    struct cmsghdr *header;
    ssize_t length = recvmsg(supervisor, &message, MSG_CMSG_CLOEXEC);
    size_t count = 0;

    if (length == 0 || (length < 0 && errno != EINTR))
        _exit(0); /* the supervisor is gone */
    header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(passed, CMSG_DATA(header), count * sizeof(int));
    }
    if (count == PASSED && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return length;
    while (count > 0)
        close(passed[--count]);
    return -1;
}

/* Cuts the request into its words: the folder, a variable, the command. 0: it is not whole. */
static int split(size_t length)
{
    size_t at = sizeof(struct spawn_request);
    size_t count = 0;

    if (length <= at || request[length - 1] != '\0')
        return 0;
    while (at < length) {
        if (count == MAX_WORDS)
            return 0;
        words[count++] = request + at;
        at += strlen(request + at) + 1;
    }
    words[count] = NULL;
    return count > 2;
}

static int terminals = -1; /* leads to a process that makes terminals where we may not */

static int new_terminal(const struct winsize *size, int *slave)
{
    return terminals < 0 ? make_terminal(size, slave) : ask_terminal(terminals, size, slave);
}

static noreturn void become(const int passed[PASSED], uint16_t terminal, int slave)
{
    sigset_t none;
    char kind = 'E';

    sigemptyset(&none);
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || (slave >= 0 && ioctl(slave, TIOCSCTTY, 0) < 0))
        goto failed;
    for (int standard = 0; standard < 3; standard++)
        if (dup2(terminal & 1U << standard ? slave : passed[1 + standard], standard) < 0)
            goto failed;
    kind = 'C';
    if (words[0][0] != '\0' && chdir(words[0]) < 0)
        goto failed;
    kind = 'E';
    if (words[1][0] != '\0' && putenv(words[1]) != 0)
        goto failed;
    kind = 'X';
    execute(words + 2, &none);
failed:
    reply(passed[0], kind, errno, -1);
    _exit(127);
}

static void spawn(const int passed[PASSED], const struct spawn_request *wanted)
{
    int slave = -1;
    int master = -1;
    pid_t pid = -1;

    errno = EAGAIN;
    if (spawned_count < most && (!wanted->terminal || (master = new_terminal(&wanted->size, &slave)) >= 0))
        pid = fork();
    if (pid == 0)
        become(passed, wanted->terminal, slave);
    if (pid < 0) {
        reply(passed[0], 'E', errno, -1);
        close(passed[0]);
    } else {
        spawned[spawned_count].pid = pid;
        spawned[spawned_count].has_terminal = wanted->terminal != 0;
        spawned[spawned_count++].client = passed[0];
        reply(passed[0], 'P', pid, master);
    }
    if (master >= 0) {
        close(master);
        close(slave);
    }
    for (int standard = 1; standard < PASSED; standard++)
        close(passed[standard]);
}

static void serve_request(int supervisor)
{
    struct spawn_request wanted;
    int passed[PASSED];
    ssize_t length = receive(supervisor, passed);

    if (length < 0)
        return;
    if (split((size_t)length)) {
        memcpy(&wanted, request, sizeof wanted);
        spawn(passed, &wanted);
        return;
    }
    reply(passed[0], 'E', EBADMSG, -1);
    for (int number = 0; number < PASSED; number++)
        close(passed[number]);
}

/* The command is not reaped before we look, so no other process has its pid. */
static void serve_client(size_t number)
{
    unsigned char wanted = SIGHUP;
    pid_t pid = spawned[number].pid;
    ssize_t length = recv(spawned[number].client, &wanted, 1, MSG_DONTWAIT);

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        close(spawned[number].client);
        spawned[number].client = -1;
        wanted = SIGHUP;
    }
    if (kill(-pid, wanted) < 0)
        kill(pid, wanted); /* it has no group of its own yet */
    if (length <= 0)
        kill(-pid, SIGCONT);
}

static void reap(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t number = 0; number < spawned_count; number++)
            if (spawned[number].pid == pid) {
                if (spawned[number].client >= 0) {
                    reply(spawned[number].client, 'S', status, -1);
                    close(spawned[number].client);
                }
                spawned[number] = spawned[--spawned_count];
                break;
            }
}

/* Whether our parent asks the session to end. It has asked the commands too; shells at a terminal heed only its hang-up. */
static int is_end_asked(int signals)
{
    struct signalfd_siginfo info;
    int is_asked = 0;

    while (read(signals, &info, sizeof info) > 0)
        is_asked = is_asked || (info.ssi_signo == SIGTERM && (pid_t)info.ssi_pid == getppid());
    for (size_t number = 0; is_asked && number < spawned_count; number++)
        if (spawned[number].has_terminal)
            kill(-spawned[number].pid, SIGHUP);
    return is_asked;
}

static size_t room(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur <= NEEDED)
        return 0;
    return files.rlim_cur - NEEDED < MAX_SPAWNED ? files.rlim_cur - NEEDED : MAX_SPAWNED;
}

static noreturn void serve(int supervisor, int signals)
{
    static struct pollfd watched[2 + MAX_SPAWNED];
    int is_ending = 0;

    while (!is_ending || spawned_count > 0) {
        size_t count = spawned_count;

        watched[0] = (struct pollfd) { .fd = signals, .events = POLLIN };
        watched[1] = (struct pollfd) { .fd = supervisor, .events = POLLIN };
        for (size_t number = 0; number < count; number++)
            watched[2 + number] = (struct pollfd) { .fd = spawned[number].client, .events = POLLIN };
        if (poll(watched, 2 + count, -1) < 0 && errno != EINTR)
            _exit(1);
        for (size_t number = 0; number < count; number++)
            if (watched[2 + number].revents)
                serve_client(number);
        if (is_end_asked(signals)) {
            is_ending = 1;
            most = 0;
        }
        reap();
        if (watched[1].revents)
            serve_request(supervisor);
    }
    _exit(0);
}

static noreturn void serve_spawns(char **argv, int makers)
{
    sigset_t everything;
    int ends[2];
    int signals;

    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NAME, "netsandbox-exec") < 0
        || syscall(SYS_close_range, 0U, CHANNEL - 1U, 0U) < 0 || (makers >= 0 && dup3(makers, MAKERS, O_CLOEXEC) < 0)
        || syscall(SYS_close_range, makers < 0 ? MAKERS : MAKERS + 1U, ~0U, 0U) < 0)
        _exit(1);
    terminals = makers < 0 ? -1 : (int)MAKERS;
    for (; *argv != NULL; argv++) /* `pkill -f` of the command's words means the command */
        memset(*argv, 0, strlen(*argv));
    sigfillset(&everything);
    signals = signalfd(-1, &everything, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals != 0 || dup2(signals, 1) < 0 || dup2(signals, 2) < 0) /* what arrives must not get these numbers */
        _exit(1);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0
        || channel_descriptors(CHANNEL, 'R', &ends[1], 1) < 0)
        _exit(1);
    close(CHANNEL);
    close(ends[1]);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); /* nohup of the session is not one of these commands */
    most = room();
    serve(ends[0], signals);
}

void fork_spawner(char **command, int makers)
{
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0UL);

    if (pid == 0)
        serve_spawns(command, makers);
    if (pid < 0)
        channel_descriptors(CHANNEL, 'R', NULL, 0); /* the session goes on without it */
}
