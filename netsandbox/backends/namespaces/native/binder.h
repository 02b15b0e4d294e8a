/* The binder: a process whose root is an empty tree, where the sockets of the session are bound. */
#ifndef NETSANDBOX_BINDER_H
#define NETSANDBOX_BINDER_H

#include <linux/seccomp.h>
#include <sys/types.h>

#include "socket_call.h"

/* Starts it at the first call, with the rights of the caller's session. Whether there is one. */
int has_binder(const struct seccomp_notif *call);

/* Binds the socket to exactly these bytes in the binder's tree: a descriptor of the socket's file, or -1 with errno. */
int bind_apart(int socket, const union address *address, socklen_t length);

#endif
