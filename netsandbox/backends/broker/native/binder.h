/* The binder: a process that is confined by Landlock as the command is, and makes socket files for it. So the kernel decides
 * where the session may make one, although we bind the socket. It is not dumpable: the command can neither trace it nor take
 * its descriptors. If it is killed, no path can be bound any more.
 *
 * A path is seen by programs of the host too, and they must not reach the session's server. So what lies there is a stand-in,
 * a socket file without a server, and the socket is bound elsewhere (unix_sockets.c). */
#ifndef NETSANDBOX_BINDER_H
#define NETSANDBOX_BINDER_H

#include <sys/types.h>

#include "place.h"

/* Makes the sockets between the broker and the binder. Called before the command's process is made. */
void binder_begin(void);

/* Forks the binder, as a child of the broker, from the process that becomes the command; after it gave up its rights, and
 * before the filter, which would trap the binder's own calls. */
void fork_binder(void);

#define MARK 110110110L /* nanoseconds in the time of a stand-in: one whose session is over is dead, not the host's */

/* In the broker: makes the stand-in for a path. 0 with a descriptor of it in *shown*, or an errno. */
int make_stand_in(int cwd, mode_t mask, const union address *address, socklen_t length, int *shown);

#endif
