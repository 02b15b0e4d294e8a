/* The ports of the session's localhost that its programs have bound, and where they are on this host.
 *
 * The loopback is shared with the host. A program of the host that listens on every address would answer at an address of
 * the session too, as soon as the session's own server is gone. So a guard, a socket that is bound there but does not
 * listen, holds each place from the first bind to the session's end: the kernel lets no other program listen there, nor on
 * every address with that port. The guard is bound to a device that does not exist and the session's sockets to the
 * loopback device, so only sockets without a device conflict with it. To a port without a guard nothing is connected. */
#ifndef NETSANDBOX_OWN_PORTS_H
#define NETSANDBOX_OWN_PORTS_H

#include <stdint.h>

#include "place.h"

/* Binds *copy*, a socket of *family*, to *actual*, whose port may be 0; *port* is what the program asked for, or 0. The
 * place that it got is in *actual* then. *is_both*: it serves IPv4 and IPv6. 0, or an errno. */
int bind_own(int copy, int family, int is_both, uint16_t port, struct place *actual);

/* Has a socket that was bound so listen. 0, or an errno. */
int listen_own(int copy, const struct place *actual, int backlog);

/* Where a port of localhost leads, for IPv4 or IPv6. 0 if no program of the session has bound it. */
int find_own(int is_ipv6, uint16_t port, struct place *into);

#endif
