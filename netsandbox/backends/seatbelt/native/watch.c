/* Ends the command when its supervisor is gone (INV-10). macOS has no signal for the death of a parent, so a separate
 * process outside the profile waits for the end of a pipe that the supervisor holds. The command cannot signal it: the
 * profile allows signals only to the session's own processes.
 *
 * Not reached: processes whose parents ended before, since they are no longer descendants. They have no network. */
#include "apply.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PROCESSES 4096
#define PROC_PPID_ONLY 6

/* From libproc.h, which not every tool chain has. Returns the number of bytes written. */
int proc_listpids(uint32_t type, uint32_t of, void *buffer, int size);

/* Stops each process before it looks for its children, so that none is made unseen; then kills them all. */
static void end_family(pid_t first)
{
    static pid_t family[MAX_PROCESSES];
    int known = 1;
    family[0] = first;
    for (int at = 0; at < known; at++) {
        kill(family[at], SIGSTOP);
        int room = (MAX_PROCESSES - known) * (int)sizeof *family;
        int filled = room > 0 ? proc_listpids(PROC_PPID_ONLY, (uint32_t)family[at], family + known, room) : 0;
        if (filled > 0)
            known += filled / (int)sizeof *family;
    }
    for (int at = 0; at < known; at++)
        if (family[at] > 1)
            kill(family[at], SIGKILL);
}

_Noreturn static void watch(pid_t command)
{
    char word;
    ssize_t count;
    setsid(); /* ignores signals of the terminal */
    close_descriptors(0, LIFE);
    do
        count = read(LIFE, &word, 1);
    while (count < 0 && errno == EINTR);
    if (count == 0) /* a byte means that the command has ended and its pid may be reused */
        end_family(command);
    _exit(0);
}

void watch_over(pid_t command)
{
    pid_t between = fork();
    if (between < 0)
        fail("watch", errno, "");
    if (between == 0) { /* a second fork detaches the watcher: the command waits only for its own children */
        pid_t watcher = fork();
        if (watcher == 0)
            watch(command);
        _exit(watcher < 0);
    }
    int status = 0;
    while (waitpid(between, &status, 0) < 0)
        if (errno != EINTR)
            fail("watch", errno, "");
    if (status != 0)
        fail("watch", EAGAIN, "");
}
