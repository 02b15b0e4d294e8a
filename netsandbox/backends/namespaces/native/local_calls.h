/* Calls on internet sockets that fail at the session's own loopback, where a program may have meant the host's. Only
 * told: the kernel has decided.
 *
 * here -> supervisor: L <struct local_call> exe NUL */
#ifndef NETSANDBOX_LOCAL_CALLS_H
#define NETSANDBOX_LOCAL_CALLS_H

#include <stdint.h>

#include "socket_call.h"

enum local_kind {
    LOCAL_REFUSED = 'r',   /* connect(2): nothing listens at the port */
    LOCAL_CONNECTED = 'c', /* at a port that refused before */
    LOCAL_TAKEN = 't',     /* bind(2): the port is in use */
};

struct local_call {
    int32_t pid;
    uint32_t times; /* so often was it refused so far */
    uint16_t port;
    uint8_t kind;
    uint8_t unused;
};

/* *error* is what the call gave: 0, or an errno. Called before the caller is answered. */
void report_local(const struct taken *taken, int error);

#endif
