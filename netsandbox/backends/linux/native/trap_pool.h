/* The threads that receive trapped calls (seccomp_unotify(2)) and serve them. */
#ifndef NETSANDBOX_TRAP_POOL_H
#define NETSANDBOX_TRAP_POOL_H

#include <linux/seccomp.h>
#include <stdnoreturn.h>

#define MAX_THREADS 300 /* one receives, the others wait for a connect or for their turn */

extern int trap_listener;

/* Whether the caller still waits. If not, what was read of it may be of another process. */
int is_waiting(const struct seccomp_notif *call);

void let_go_on(const struct seccomp_notif *call);

/* Lets another thread receive, so that this one may wait. 0: too many wait already. */
int hand_over(void);

void take_listener(int listener);

/* Takes the listener from the process that becomes the command; *source* leads there. */
void receive_listener(int source);

/* One thread receives at a time, so *serve* may use static data until it hands over. */
noreturn void serve_pool(void (*serve)(struct seccomp_notif *call));

#endif
