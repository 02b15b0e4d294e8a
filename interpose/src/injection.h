/* The two variables that load this library into a process and give it the path of the port map. They are stored when
 * the process starts, because programs change and clear their environment. */
#ifndef NETSANDBOX_INJECTION_H
#define NETSANDBOX_INJECTION_H

#include <stddef.h>

#ifdef __APPLE__
#define NS_PRELOAD "DYLD_INSERT_LIBRARIES"
#define NS_LIBRARY "libnetsandbox_interpose.dylib"
#else
#define NS_PRELOAD "LD_PRELOAD"
#define NS_LIBRARY "libnetsandbox_interpose.so"
#endif
#define NS_PORT_MAP "NETSANDBOX_PORT_MAP"

/* cdef */
struct ns_injection {
    char preload[1024]; /* LD_PRELOAD=/…/libnetsandbox_interpose.so, this library alone */
    char map[1024];     /* NETSANDBOX_PORT_MAP=/… */
};
/* end of cdef */

/* The stored injection, or NULL if there is none: the library was loaded in another way. */
const struct ns_injection *ns_injection(void);

/* An environment, and the position of the injection in it. The functions below are pure; the caller provides the
   memory. */
struct ns_shape {
    size_t count;      /* variables */
    ptrdiff_t preload; /* position of LD_PRELOAD, or -1 */
    ptrdiff_t map;     /* position of NETSANDBOX_PORT_MAP, or -1 */
    size_t joined;     /* bytes for "LD_PRELOAD=ours:theirs", or 0 when there is nothing to join */
    int complete;      /* 1: nothing to do */
};

struct ns_shape ns_environment_shape(const struct ns_injection *injection, char *const *environment);

/* Fills *room*, of shape.count + 3 pointers, with *joined*, of shape.joined bytes, for the variable of that length. */
void ns_environment_complete(const struct ns_injection *injection, char *const *environment, struct ns_shape shape,
                             char **room, char *joined);

/* Fills *room*, of shape.count pointers, with everything but LD_PRELOAD, which must exist. */
void ns_environment_drop(char *const *environment, struct ns_shape shape, char **room);

#endif
