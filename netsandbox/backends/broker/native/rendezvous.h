/* Joins a caller's TCP socket with the supervisor. Our socket at the rendezvous address listens; the caller's is connected
 * to it, and what was accepted goes to the supervisor, with the place that the caller wanted. So no door is reachable by
 * other programs: a connection whose source is not the caller's socket is closed at once. */
#ifndef NETSANDBOX_RENDEZVOUS_H
#define NETSANDBOX_RENDEZVOUS_H

#include <linux/seccomp.h>

#include "place.h"
#include "setup.h"

/* What the supervisor gets with each connection. */
struct arrival {
    struct place source; /* of the caller's socket */
    struct place wanted;
    int32_t pid;
    int32_t unused;
};

void rendezvous_begin(void);

/* *copy* is the caller's socket, of *family*. 0, or an errno. */
int join_door(const struct seccomp_notif *call, int copy, int family, int door, const struct place *wanted);

#endif
