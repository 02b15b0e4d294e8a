/* A copy of the caller's socket, on which a trapped call is made. */
#ifndef NETSANDBOX_CALLER_SOCKET_H
#define NETSANDBOX_CALLER_SOCKET_H

#include <linux/seccomp.h>
#include <sys/types.h>

/* The copy, or -1 with errno; ESRCH if the caller waits no longer. */
int caller_socket(const struct seccomp_notif *call, int number);

/* Whether the socket was made in the session's network. */
int is_of_network(const struct seccomp_notif *call, int copy);

#endif
