/* The path that a trapped call names, read from the caller's memory. The caller may be hostile: whatever its memory holds,
 * nothing is read beyond PATH_MAX bytes, and a path that cannot be read is no path. */
#ifndef NETSANDBOX_CALL_PATH_H
#define NETSANDBOX_CALL_PATH_H

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "traps.h"

/* Bytes of the caller's memory up to *size*; they may end at a page that is not there. */
ssize_t caller_memory(pid_t pid, uint64_t address, void *into, size_t size);

/* The target of /proc/PID/WHAT with NUL at its end, or an empty text; its length. */
size_t caller_link(pid_t pid, const char *what, char *into, size_t size);

/* What follows *name* in the status of a process, or an empty text. */
const char *status_field(pid_t pid, const char *name);
pid_t process_of(pid_t thread);

/* The absolute path that the caller means, of PATH_MAX bytes at most; its length, or 0. */
size_t full_path(const struct seccomp_notif *call, const struct path_row *row, char *into);

#endif
