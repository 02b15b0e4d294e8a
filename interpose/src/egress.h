/* The way to the doors for connections to elsewhere (route.h has the rules). Only systems whose kernel does not
 * redirect need it: macOS always; Linux for tests that define NS_EGRESS. Other builds do not contain it. */
#ifndef NETSANDBOX_EGRESS_H
#define NETSANDBOX_EGRESS_H

#if defined(__APPLE__) && !defined(NS_EGRESS)
#define NS_EGRESS
#endif

#include "route.h"

#include <sys/socket.h>

#ifdef NS_EGRESS
/* 1 and a route if the kernel must not get the address. Keeps errno. */
int ns_egress_route(int fd, const void *name, socklen_t length, int unspecified, struct ns_route *route);
/* As connect(2), for that name by that route. */
int ns_egress_connect(int fd, const void *name, socklen_t length, const struct ns_route *route);
/* Changes the plan for a datagram to port 53 elsewhere, and stores its original destination. Keeps errno. */
void ns_egress_datagram(int fd, const void *name, socklen_t length, struct ns_plan *plan);
#else
static inline int ns_egress_route(int fd, const void *name, socklen_t length, int unspecified, struct ns_route *route)
{
    (void)fd, (void)name, (void)length, (void)unspecified, (void)route;
    return 0;
}
static inline int ns_egress_connect(int fd, const void *name, socklen_t length, const struct ns_route *route)
{
    (void)fd, (void)name, (void)length, (void)route;
    return -1;
}
static inline void ns_egress_datagram(int fd, const void *name, socklen_t length, struct ns_plan *plan)
{
    (void)fd, (void)name, (void)length, (void)plan;
}
#endif

#endif
