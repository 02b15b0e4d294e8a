/* The last steps before the command, in the process that becomes it. Each ends the process if it fails. */
#ifndef NETSANDBOX_JAIL_H
#define NETSANDBOX_JAIL_H

#include <linux/filter.h>

/* No capabilities, no new privileges, and the collected access rules of process.h, which keep signals inside too. Where
 * they cannot, signals to the process group are refused, unless the filter traps signals. */
void give_up_rights(int traps_signals);

/* Returns the seccomp listener. */
int install_filter(const struct sock_fprog *filter);

#endif
