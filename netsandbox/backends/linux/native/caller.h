/* A process with a trapped call, as /proc and its memory show it. The caller may be hostile, and may be gone: what was read
 * counts only if the call still waits afterwards (trap_pool.h). */
#ifndef NETSANDBOX_CALLER_H
#define NETSANDBOX_CALLER_H

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of the caller's memory up to *size*; they may end at a page that is not there. */
ssize_t caller_memory(pid_t pid, uint64_t address, void *into, size_t size);

/* Writes all of it into the caller's memory, or returns 0. The caller may be gone, and its pid another process's: the memory
 * is opened first, and written only if the caller still waits then, so it is the caller's, whoever gets the pid later. */
int caller_store(const struct seccomp_notif *call, uint64_t address, const void *from, size_t size);

/* The target of /proc/PID/WHAT with NUL at its end, or an empty text; its length. */
size_t caller_link(pid_t pid, const char *what, char *into, size_t size);

/* What follows *name* in the status of a process, or an empty text. */
const char *status_field(pid_t pid, const char *name);
pid_t process_of(pid_t thread);

/* Whether a signal waits for the caller: 0, 1 if another of its threads may take it, 2. */
int signal_waits(pid_t pid);

#endif
