/* An environment that lacks the injection, and the one that has it. Pure; the caller brings the room. */
#ifndef NETSANDBOX_ENVIRONMENT_H
#define NETSANDBOX_ENVIRONMENT_H

#include "injection.h"

#include <stddef.h>

struct ns_shape {
    size_t count;      /* variables */
    ptrdiff_t preload; /* where LD_PRELOAD stands, or -1 */
    ptrdiff_t map;     /* where NETSANDBOX_PORT_MAP stands, or -1 */
    size_t joined;     /* bytes for "LD_PRELOAD=ours:theirs", or 0 when there is nothing to join */
    int complete;      /* 1: nothing is to be done */
};

struct ns_shape ns_environment_shape(const struct ns_injection *injection, char *const *environment);

/* Fills *room*, of shape.count + 3 pointers, with *joined*, of shape.joined bytes, for the variable of that length. */
void ns_environment_complete(const struct ns_injection *injection, char *const *environment, struct ns_shape shape,
                             char **room, char *joined);

/* Fills *room*, of shape.count pointers, with everything but LD_PRELOAD, which must be there. */
void ns_environment_drop(char *const *environment, struct ns_shape shape, char **room);

#endif
