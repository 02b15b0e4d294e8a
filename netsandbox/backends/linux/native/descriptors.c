#include "descriptors.h"

#include <sys/resource.h>

#include "channel.h"

#define RESERVED_FILES 512 /* a message carries 253 at most */
#define MIN_FILES 2048     /* a lower limit stays unchanged: programs need what they have */

/* A user may have as many descriptors in flight as the sender's limit of open files, counted over all processes of that
 * user (unix(7), ETOOMANYREFS). We take the whole limit and give the command less, so that it cannot use up what this
 * or another session needs to pass a socket out. */
static struct rlimit files;

void take_descriptors(void)
{
    struct rlimit all;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        fail("reading the limit of open files");
    all.rlim_cur = all.rlim_max = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &all) < 0)
        fail("raising the limit of open files");
}

void keep_descriptors_in_reserve(void)
{
    if (files.rlim_max > MIN_FILES)
        files.rlim_max -= RESERVED_FILES;
    if (files.rlim_cur > files.rlim_max)
        files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        fail("setting the limit of open files");
}
