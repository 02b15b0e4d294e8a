/* Whether a program can load the library. On macOS, dyld kills an arm64e program if a library without that architecture
 * is inserted, and deletes the variable for a program that the system protects. Both start without the library, and the
 * kernel refuses what the library would have rewritten. */
#ifndef NETSANDBOX_EXEC_TARGET_H
#define NETSANDBOX_EXEC_TARGET_H

#include <stdint.h>
#include <sys/stat.h>

#define NS_HEAD_BYTES 1024

/* cdef */
/* 0 if the first bytes of a file are a Mach-O program with an arm64e part, 1 for anything else. */
int ns_target_takes(const void *head, uint32_t length);
/* 1 for a path in a folder that System Integrity Protection protects: /System, /usr but /usr/local, /bin, /sbin. */
int ns_target_is_protected(const char *path);
enum { NS_TARGET_TAKES, NS_TARGET_BARE, NS_TARGET_KILLED };
/* BARE for such a path and for a program that runs as another user; KILLED for a file that ns_target_takes refuses. The
 * same for a script with such an interpreter. A file that cannot be read is TAKES. Keeps errno. */
int ns_target_file_fate(const char *path);
/* 1 if the result is TAKES. */
int ns_target_file_takes(const char *path);
/* end of cdef */
/* The first bytes of a file, and its status: all zero if it cannot be read. */
uint32_t ns_target_head(const char *path, char *head, struct stat *about);

#endif
