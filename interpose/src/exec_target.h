/* Whether a program takes the library. On macOS one that is built for arm64e is killed by dyld when a library without
 * that architecture is inserted into it, and one that the system protects has the variable deleted by dyld; both are
 * started without, and the kernel refuses what is left. */
#ifndef NETSANDBOX_EXEC_TARGET_H
#define NETSANDBOX_EXEC_TARGET_H

#include <stdint.h>
#include <sys/stat.h>

#define NS_HEAD_BYTES 1024

/* cdef */
/* 0 if the first bytes of a file are a Mach-O program with an arm64e part, 1 for anything else. */
int ns_target_takes(const void *head, uint32_t length);
/* 1 for a path in a folder that System Integrity Protection keeps: /System, /usr but /usr/local, /bin, /sbin. */
int ns_target_is_protected(const char *path);
enum { NS_TARGET_TAKES, NS_TARGET_BARE, NS_TARGET_KILLED };
/* BARE for such a path and for a program that runs as another user, KILLED for a file that ns_target_takes refuses; so
 * for a script whose interpreter is one. A file that cannot be read takes it. Keeps errno. */
int ns_target_file_fate(const char *path);
/* 1 if that is TAKES. */
int ns_target_file_takes(const char *path);
/* end of cdef */
/* The first bytes of a file, and what it is: all zero if it cannot be read. */
uint32_t ns_target_head(const char *path, char *head, struct stat *about);

#endif
