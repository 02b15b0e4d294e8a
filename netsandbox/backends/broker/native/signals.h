/* Signals, on kernels whose Landlock does not keep them inside (before Linux 6.12): the filter traps the calls that send
 * them, and a process of the session signals only processes of the session. The same holds for calls that set limits or the
 * schedule of a process, on all kernels. */
#ifndef NETSANDBOX_SIGNALS_H
#define NETSANDBOX_SIGNALS_H

#include <linux/seccomp.h>

void serve_signal(const struct seccomp_notif *call);

#endif
