/* What the command may do beyond the session's mounts and filter: its resource limits, and its access to files by
 * Landlock. Both are collected while the plan is carried out, and take effect in the command's own process. */
#ifndef NETSANDBOX_PROCESS_H
#define NETSANDBOX_PROCESS_H

#include <stdint.h>

enum { MAX_LIMITS = 16 };

/* setrlimit(2), soft and hard. */
void limit_add(uint32_t resource, uint64_t value);

/* From now on the command has these access rights to files (linux/landlock.h) only where access_permit gives them, and
 * those of the *network* nowhere, as far as this kernel knows the rights. Renaming from folder to folder, which every set
 * of rules forbids, stays as it is. */
void access_begin(uint32_t rights, uint32_t network);
void access_permit(uint32_t rights, const char *path);

/* The same where the path leads without any link; one that is gone, or became a link, stays closed. */
void access_permit_exactly(uint32_t rights, const char *path);

/* Whether this kernel knows all of these rights to files. */
int access_handles(uint32_t rights);
int access_handles_network(void);

/* Permits to read and write every file but those of processes in /proc: their memory and variables are among them. */
void access_permit_all_but_processes(uint32_t rights);

/* The collected rules, or -1; *keeps_signals*: whether they keep signals inside too. A process takes them as its only
 * ones, since a second set of rules would forbid to rename from folder to folder again. */
int access_rules(int *keeps_signals);

void limits_set(void);

/* When memory is short, the kernel kills this process and those it makes before the supervisor, whose score they have by
 * half of all memory more. They cannot lower it: a session does not write /proc. */
void die_first(void);

#endif
