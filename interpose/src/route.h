/* Which door on localhost takes what is meant for elsewhere: the rules, pure. Only where the kernel does not redirect,
 * that is on macOS, do the hooks ask for it (egress.h). */
#ifndef NETSANDBOX_ROUTE_H
#define NETSANDBOX_ROUTE_H

#include "rewrite.h"

/* cdef */
#define NS_ROUTE_NONE 0     /* not elsewhere, or nobody is there for it: the kernel's to judge */
#define NS_ROUTE_EGRESS 1   /* connect to route.name, and send route.preamble before anything else */
#define NS_ROUTE_RESOLVER 2 /* use route.name instead */
#define NS_ROUTE_REFUSE 3   /* there is a map, and it makes no sense: EACCES */

#define NS_TCP 6
#define NS_UDP 17
#define NS_DNS_PORT 53

struct ns_route {
    int32_t kind;           /* NS_ROUTE_… */
    uint32_t length;        /* bytes of name */
    uint8_t name[NS_NAME_BYTES];
    struct ns_preamble preamble;
};

/* 1 for an internet address that is neither loopback nor wildcard. *unspecified* is the family that AF_UNSPEC means. */
int ns_is_elsewhere(const void *name, uint32_t length, int unspecified);
/* By protocol, NS_TCP or NS_UDP; for any other there is no door. */
void ns_route_plan(const struct ns_map *map, const void *name, uint32_t length, int unspecified, uint32_t protocol,
                   struct ns_route *route);
/* 1 if this is the address of the door that takes connections, or of the one that answers DNS. */
int ns_route_is_door(const struct ns_map *map, const void *name, uint32_t length);
/* end of cdef */

#endif
