/* The last steps before the command: no capabilities, no new privileges, the seccomp filter. */
#ifndef NETSANDBOX_JAIL_H
#define NETSANDBOX_JAIL_H

#include <linux/filter.h>

/* Runs in the process that becomes the command. Returns the seccomp listener; ends the process if a step fails. */
int lock_down(const struct sock_fprog *filter);

#endif
