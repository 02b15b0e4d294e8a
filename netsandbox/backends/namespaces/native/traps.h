/* The process that receives the command's trapped system calls. It runs outside of the session, beside the supervisor.
 *
 * Calls on files are observed: they are always continued at once, since mounts decide, and only those that the session's
 * mounts will refuse although the host would not are reported. For `learn`, changes that nothing refuses are reported too.
 * The broker makes connect and bind calls (sockets.h). Every other call is passed to the supervisor, which answers by the
 * call's id with its own copy of the listener.
 *
 * supervisor -> here: one record with rows of 8 bytes, each struct path_row; one with the paths that a rule hides, each
 * with NUL at its end, and a NUL after the last. A row for bind(2) says that the supervisor decides about ports; an
 * unused row stands for none
 * here -> supervisor:
 *   T <struct seccomp_notif>                     a call to answer
 *   F <struct refusal> exe NUL path NUL          a call on a file that is refused
 *   A <struct seccomp_notif> <struct refusal> exe NUL path NUL   the same, held: the supervisor asks the user, and answers
 *   L <struct local_call> exe NUL                a call that the session's own loopback refused (local_calls.h)
 *   M path NUL                                   the session makes itself what was not there, or a folder above it
 *   U <u32 count>                                this many reports did not fit, or could not be made out
 *
 * If this process ends, the supervisor sees the end of the socket and ends the session (INV-1). */
#ifndef NETSANDBOX_TRAPS_H
#define NETSANDBOX_TRAPS_H

#include <linux/seccomp.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <sys/uio.h>

#define RELAY 4 /* the descriptor the supervisor gives us */

enum path_use {
    USE_OPEN = 'o',   /* by the flags of open(2) */
    USE_CREAT = 'c',  /* as creat(2) */
    USE_HOW = 'h',    /* the flags are in memory: struct open_how */
    USE_CHANGE = 'w', /* changes what exists */
    USE_NAME = 'n',   /* makes or replaces a name */
    USE_REMOVE = 'u', /* removes a name */
    USE_FOLDER = 'd', /* makes a folder */
    USE_EXEC = 'x',   /* executes it */
};

#define NO_ARGUMENT 255
#define TELLS 1
#define ASKS 2

/* One path of a call, by argument numbers; file_calls.py has the table. */
struct path_row {
    uint16_t call;
    uint8_t use;
    uint8_t path;
    uint8_t folder; /* the descriptor that the path starts at */
    uint8_t flags;
    uint8_t follows; /* a link at the end */
    uint8_t tells; /* TELLS: changes that are not refused are reported too; ASKS: refused calls are held */
};

struct refusal {
    uint8_t why;  /* 'h': not in the session; 'r': read-only there; 'd': a rule hides it; 'x': not listed; 'o': not refused */
    uint8_t does; /* 'r' read, 'w' change, 'n' make a name, 'u' remove one, 'd' folder, 'x' execute */
    uint16_t call;
    int32_t pid; /* the host's */
    uint32_t times;
};

/* *source* is where the listener comes from. */
noreturn void serve_traps(int source);

#endif
