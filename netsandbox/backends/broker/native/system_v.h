/* Shared memory, semaphores and message queues of System V (sysvipc(7)). The session is in the host's IPC namespace, so we
 * make its objects, without a key of the host, and let it use only these. They are removed with the session. */
#ifndef NETSANDBOX_SYSTEM_V_H
#define NETSANDBOX_SYSTEM_V_H

#include <linux/seccomp.h>

void serve_system_v(const struct seccomp_notif *call);

/* Removes what is left, after the last process of the session. */
void system_v_end(void);

#endif
