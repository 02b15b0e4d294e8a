/* The spawner: a process of the session that starts the commands of `netsandbox exec`.
 *
 * It is forked from the process that becomes the command, after that one has locked itself down and before it executes
 * anything. So what it starts has the very confinement of the first command: the same filter with the same listener, and
 * the same Landlock domain, in which commands may signal and debug one another as in one session.
 *
 * The command can kill or stop it, which ends `exec` for this session. It can neither read nor trace it nor take its
 * descriptors (it is not dumpable), and there is nothing else that it listens to: all other signals are blocked. When its
 * parent ends the session (ending.h), it leaves after its last command, so that the client of each gets the status.
 *
 * supervisor -> here: struct spawn_request folder NUL variable NUL words, each with NUL   [client, 0, 1, 2]
 * here -> client:
 *   P <i32 pid> [descriptor]  started, with its pid inside; the descriptor is the terminal's master
 *   C, X <i32 errno>          its folder cannot be entered; it cannot be executed. S follows
 *   E <i32 errno>             it was not started
 *   S <i32 status>            it ended (wait status)
 * client -> here: <u8 signal>, for the process group of its command. The client's end means SIGHUP. */
#ifndef NETSANDBOX_SPAWNER_H
#define NETSANDBOX_SPAWNER_H

#include <signal.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/ioctl.h>

#define MAX_SPAWN 131072 /* bytes of a request */
#define MAX_WORDS 65536  /* the folder, a variable, the command and its arguments */
#define MAX_SPAWNED 64   /* commands at the same time */

struct spawn_request {
    uint16_t terminal; /* bit N: descriptor N is a new terminal of the session */
    uint16_t unused;
    struct winsize size;
};

/* Becomes the program: 0, 1 and 2 stay open, *mask* is its signal mask. Returns if it cannot be executed, with errno. */
void execute(char **words, const sigset_t *mask);

/* Forks the spawner as a child of our parent, so that the command has no child that it did not make. Without one, for
 * instance under a limit of one process, `netsandbox exec` is refused. *makers* leads to a process that makes terminals
 * (terminal.h), where the session itself may not; -1: it may. */
void fork_spawner(char **words, int makers);

#endif
