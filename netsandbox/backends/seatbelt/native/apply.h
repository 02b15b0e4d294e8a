/* What the parts of netsandbox-apply share. */
#ifndef NETSANDBOX_APPLY_H
#define NETSANDBOX_APPLY_H

#include <stddef.h>
#include <sys/types.h>

enum {
    PLAN = 3,   /* the profile and the environment, each string ended by NUL */
    REPORT = 4, /* where a failure is told; closed by exec when there was none */
    LIFE = 5    /* ends when the supervisor does */
};

#define CONFINED "+" /* said on REPORT when only exec is left; silence before is a helper that was killed */

/* Says `step NUL errno NUL detail` on REPORT and leaves. */
_Noreturn void fail(const char *step, int number, const char *detail);

/* Closes every descriptor from *first* on but *kept*. */
void close_descriptors(int first, int kept);

/* Connects to a closed port of localhost, which the profile does not open. Leaves unless it was forbidden. */
void prove_confined(unsigned short port);

/* Starts a process that ends *command* and its descendants when LIFE ends without a word. */
void watch_over(pid_t command);

#endif
