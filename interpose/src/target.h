/* Whether a program takes the library. On macOS one that is built for arm64e is killed by dyld when a library without
 * that architecture is inserted into it; such a program is started without, and the kernel refuses what is left. */
#ifndef NETSANDBOX_TARGET_H
#define NETSANDBOX_TARGET_H

#include <stdint.h>

/* cdef */
/* 0 if the first bytes of a file are a Mach-O program with an arm64e part, 1 for anything else. */
int ns_target_takes(const void *head, uint32_t length);
/* The same for a file, and for the interpreter that a script names. A file that cannot be read takes it. Keeps errno. */
int ns_target_file_takes(const char *path);
/* end of cdef */

#endif
