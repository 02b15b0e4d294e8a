/* Where datagrams go; between datagrams.c, which has the stand-ins, and datagram_calls.c, which has the calls. */
#ifndef NETSANDBOX_DATAGRAM_ROUTES_H
#define NETSANDBOX_DATAGRAM_ROUTES_H

#include <stddef.h>

#include "socket_table.h"

/* Sends a datagram of a stand-in. 0, or an errno; a lost datagram is no error. */
int datagram_route(struct entry *entry, const struct place *wanted, const void *data, size_t length);

/* By which a datagram that waits in a stand-in is recognised. */
uint32_t datagram_hash(const void *data, size_t length);

#endif
