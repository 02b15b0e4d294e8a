/* Passes the library on through programs that dyld keeps it out of: protected shells and env. dyld deletes the variable
 * when they start, for their children too, but passes on one that they set later. So their arguments are changed to set
 * it: a shell's command, env's words. Anything that is not understood with certainty stays unchanged.
 *
 * macOS only. On Linux tests define NS_BRIDGE, and so does the module for Python, which changes a session's command. */
#ifndef NETSANDBOX_SHELL_BRIDGE_H
#define NETSANDBOX_SHELL_BRIDGE_H

#if defined(__APPLE__) && !defined(NS_BRIDGE)
#define NS_BRIDGE
#endif

#ifdef NS_BRIDGE
#include "injection.h"

#include <stddef.h>

/* cdef */
struct ns_bridge {
    const struct ns_injection *injection;
    char *const *environment; /* of the new program, with its PATH */
    int moves;                /* 1: it may start in another folder, so that only absolute paths are known */
    size_t pointers;          /* room for the arguments */
    size_t bytes;             /* room for the texts that they point to */
};

/* Fills the last two in; 0 if there is nothing to do. Keeps errno. */
int ns_bridge_measure(struct ns_bridge *bridge, const char *path, char *const *arguments);
/* The path to start with the arguments in *room*, or NULL if nothing changes. Keeps errno. */
const char *ns_bridge_build(const struct ns_bridge *bridge, const char *path, char *const *arguments, char **room,
                            char *text);
/* end of cdef */
#endif

#endif
