/* Reports calls on internet sockets that fail at the session's own loopback (refused_ports.h).
 *
 * here -> supervisor: L <struct local_call> exe NUL */
#ifndef NETSANDBOX_LOCAL_CALLS_H
#define NETSANDBOX_LOCAL_CALLS_H

#include "socket_call.h"

/* *error* is what the call gave: 0, or an errno. Called before the caller is answered. */
void report_local(const struct taken *taken, int error);

#endif
