/* Whether memory of the program's can be read. A hook must look at addresses that only the kernel looked at before, and
 * where the kernel says EFAULT a hook must not crash. */
#ifndef NETSANDBOX_READABLE_MEMORY_H
#define NETSANDBOX_READABLE_MEMORY_H

#include <stddef.h>

/* 0 means: give it to the kernel untouched and let the kernel say why. At most a page is asked about. Keeps errno. */
int ns_readable(const void *start, size_t length);

#endif
