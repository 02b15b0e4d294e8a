/* Whether memory of the program can be read. A hook must read addresses that otherwise only the kernel reads, and must
 * not crash where the kernel returns EFAULT. */
#ifndef NETSANDBOX_READABLE_MEMORY_H
#define NETSANDBOX_READABLE_MEMORY_H

#include <stddef.h>

/* 0 means: pass it to the kernel unchanged, which reports the error. At most a page is checked. Keeps errno. */
int ns_readable(const void *start, size_t length);

#endif
