/* The binder: a process that is confined by Landlock as the command is, and binds Unix sockets to paths for it. So the
 * kernel decides where the session may make a socket file, although the call is made by us. It is not dumpable: the
 * command can neither trace it nor take its descriptors. If it is killed, no path can be bound any more.
 *
 * A path is seen by programs of the host too, and they must not reach the session's server. So the file that was bound is
 * removed at once, before the socket listens, and a stand-in lies at the path: a socket file without a server. Only who
 * has a descriptor of the bound file can connect. */
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

/* A socket that the session bound, as descriptors of its files. */
struct bound {
    int served; /* where it is bound, without a name */
    int shown;  /* the stand-in at its path */
};

/* In the broker. 0, or an errno. */
int bind_confined(int socket, int cwd, mode_t mask, const union address *address, socklen_t length, struct bound *into);

#endif
