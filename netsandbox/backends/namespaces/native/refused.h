/* Whether the session's mounts refuse a path that the host would not. Only looked at: mounts decide, and a caller that
 * changes what it named meanwhile falsifies the log about itself. */
#ifndef NETSANDBOX_REFUSED_H
#define NETSANDBOX_REFUSED_H

#include <linux/seccomp.h>
#include <sys/types.h>

/* Receives the paths that a rule hides, and those that may be executed if not all may; ends the process if there are none to receive. */
void receive_hidden(void);

/* Whether the root of the session is open, by the caller; not if the caller is gone. */
int open_root(const struct seccomp_notif *call);

/* Opens *path* as the session sees it, with O_PATH. */
int inside(const char *path, int flags);

/* Whether the errno of `inside` says that there is nothing. */
int is_missing(int number);

/* *path* is absolute. refusal.why of traps.h, or 0. */
char refused_read(const char *path);

/* For a program that is not listed, *path* becomes its real one. */
char refused_execution(char *path);

/* *does* is one of refusal.does, 'e' to make a file that may not exist, or 'c' to open one that is made if it is missing,
 * which becomes 'w' or 'n'. *follow*: a link at the end. */
char refused_write(const char *path, char *does, int follow);

/* Whether a call that nothing refuses changes something: a file must exist for that, and a folder must be missing. */
int is_change(const char *path, char does);

#endif
