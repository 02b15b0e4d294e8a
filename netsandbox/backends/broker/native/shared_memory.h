/* Shared memory of System V (shmget(2)), without which PostgreSQL does not start. The session is in the host's IPC namespace,
 * so we make its segments, without a key of the host, and let it use only these. Each is removed at once and lives on while
 * it is attached, here and in the session: so nothing outlives us, however we end. Semaphores and queues are refused by the
 * filter. */
#ifndef NETSANDBOX_SHARED_MEMORY_H
#define NETSANDBOX_SHARED_MEMORY_H

#include <linux/seccomp.h>

/* shmget, shmat, shmctl. */
void serve_shared_memory(const struct seccomp_notif *call);

#endif
