/* The processes of the session: every process below this one. Orphans among them become children of the broker or of the
 * keeper, which are subreapers (prctl(2), PR_SET_CHILD_SUBREAPER), so none leaves the tree. */
#ifndef NETSANDBOX_DESCENDANTS_H
#define NETSANDBOX_DESCENDANTS_H

#include <stddef.h>
#include <stdnoreturn.h>
#include <sys/types.h>

/* Their pids, to be freed; NULL if /proc cannot be read. */
pid_t *descendants(size_t *count);

int is_descendant(pid_t pid);

/* Signals a process if it is below this one: 0, or an errno. Its descriptor is opened before the look, so another one that gets
 * its pid meanwhile is not signalled. */
int signal_descendant(pid_t pid, int number);

/* Signals every process below this one. 0 if nobody is known, or can be opened. */
int signal_descendants(int number);

/* Keeps some descriptors for kill_descendants. */
void keep_spare_descriptors(void);

/* Kills and reaps every process below this one, until there is none. Processes that fork as fast as they are killed are stopped first. */
void kill_descendants(void);

/* Ends every process below this one, then this one: the supervisor is gone, or nothing can be trusted any more. It is not left
 * to the keeper, which may be stopped. */
noreturn void end_session(void);

#endif
