/* connect(2) on a copy of the caller's socket, which may wait as long as the caller would. */
#ifndef NETSANDBOX_WAITING_CONNECT_H
#define NETSANDBOX_WAITING_CONNECT_H

#include <linux/seccomp.h>
#include <sys/socket.h>

/* 0, or an errno. If it waits, other calls go on meanwhile, and signals and timeouts have the effect that they have on the
 * caller's own connect. */
int connect_waiting(const struct seccomp_notif *call, int copy, const struct sockaddr *address, socklen_t length);

/* Closes the copy, without waiting as SO_LINGER says if the caller has closed its own meanwhile. */
void close_copy(int copy);

/* The same to where nothing should wait, for at most *milliseconds*. A program may have set its socket up so that no answer
 * gets through. 0, or an errno; other calls go on meanwhile. */
int connect_briefly(int copy, const struct sockaddr *address, socklen_t length, int milliseconds);

/* Called once, before the first call. */
void waiting_begin(void);

#endif
