/* The path that a trapped call names, read from the caller's memory. The caller may be hostile: whatever its memory holds,
 * nothing is read beyond PATH_MAX bytes, and a path that cannot be read is no path. */
#ifndef NETSANDBOX_CALL_PATH_H
#define NETSANDBOX_CALL_PATH_H

#include <linux/seccomp.h>
#include <stddef.h>

#include "traps.h"

/* The absolute path that the caller means, of PATH_MAX bytes at most; its length, or 0. */
size_t full_path(const struct seccomp_notif *call, const struct path_row *row, char *into);

#endif
