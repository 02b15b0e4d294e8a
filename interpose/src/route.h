/* The door on localhost that takes a connection to elsewhere: the rules, pure. The hooks use it only if the kernel does
 * not redirect, that is on macOS (egress.h). */
#ifndef NETSANDBOX_ROUTE_H
#define NETSANDBOX_ROUTE_H

#include "rewrite.h"

/* cdef */
#define NS_ROUTE_NONE 0     /* not elsewhere, or no door for it: the kernel decides */
#define NS_ROUTE_EGRESS 1   /* connect to route.name, and send route.preamble before anything else */
#define NS_ROUTE_RESOLVER 2 /* use route.name instead */
#define NS_ROUTE_REFUSE 3   /* there is a map, and it is invalid: EACCES */

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
/* By protocol, NS_TCP or NS_UDP; any other has no door. */
void ns_route_plan(const struct ns_map *map, const void *name, uint32_t length, int unspecified, uint32_t protocol,
                   struct ns_route *route);
/* 1 if this is the address of the egress door or of the resolver door. */
int ns_route_is_door(const struct ns_map *map, const void *name, uint32_t length);
/* end of cdef */

#endif
