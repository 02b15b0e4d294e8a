/* Declarations that the parts of netsandbox-apply share. */
#ifndef NETSANDBOX_APPLY_H
#define NETSANDBOX_APPLY_H

#include <stddef.h>
#include <sys/types.h>

enum {
    PLAN = 3,   /* the profile and the environment, each string ended by NUL */
    REPORT = 4, /* where a failure is reported; closed by exec if there is none */
    LIFE = 5    /* ends when the supervisor does */
};

#define CONFINED "+" /* written to REPORT when only exec is left; without it the helper was killed */

/* Writes `step NUL errno NUL detail` to REPORT and exits. */
_Noreturn void fail(const char *step, int number, const char *detail);

/* Closes every descriptor from *first* on except *kept*. */
void close_descriptors(int first, int kept);

/* Connects to a closed port of localhost, which the profile does not open. Exits unless the kernel forbids it. */
void prove_confined(unsigned short port);

/* Starts a process that ends *command* and its descendants if LIFE ends without a byte. */
void watch_over(pid_t command);

#endif
