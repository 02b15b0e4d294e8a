/* The trapped calls, one function each or each group. Every function answers its call exactly once. */
#ifndef NETSANDBOX_CALLS_H
#define NETSANDBOX_CALLS_H

#include <linux/seccomp.h>

#include "place.h"
#include "socket_table.h"

/* Fails the call with *error*, or gives *value*. Returns whether the caller heard it. */
int answer(const struct seccomp_notif *call, int error, int64_t value);

/* Gives the caller a new descriptor of our *socket*, as the result of its call. 0, or an errno. */
int answer_with(const struct seccomp_notif *call, int socket, int closes_on_exec);

/* The address argument of a call, read once. 0, or an errno. */
int read_address(const struct seccomp_notif *call, int pointer, int length, union address *into, socklen_t *size);

/* Writes an address and its length as getsockname(2) does. 0, or an errno. */
int write_address(const struct seccomp_notif *call, uint64_t pointer, uint64_t length, const union address *from, socklen_t size);

/* tcp.c: on a socket of TCP; each returns 0 or an errno. */
int stream_socket(const struct seccomp_notif *call, int family, int flags);
int stream_connect(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length);
int stream_bind(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length);
int stream_listen(const struct seccomp_notif *call, struct entry *entry);

/* unix_sockets.c */
int unix_socket(const struct seccomp_notif *call, int type, int flags);
int unix_connect(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length);
int unix_bind(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length);

/* The calls by their numbers. */
void serve_call(struct seccomp_notif *call);

#endif
