/* Takes a connection to a door (egress.h). A connection to elsewhere never gets there another way: any failure at the
 * door is ECONNREFUSED (INV-1). Errors of the program's own socket come from the kernel. */
#include "egress.h"

#ifdef NS_EGRESS

#include "door.h"
#include "peer_addresses.h"
#include "real_functions.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#define PATIENCE_MS 1000

static uint32_t protocol_of(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
        return 0;
    if (type == SOCK_STREAM)
        return NS_TCP;
    return type == SOCK_DGRAM ? NS_UDP : 0;
}

int ns_egress_route(int fd, const void *name, socklen_t length, int unspecified, struct ns_route *route)
{
    int saved = errno;

    if (!ns_is_elsewhere(name, length, unspecified))
        return 0;
    ns_route_plan(ns_session_map(), name, length, unspecified, protocol_of(fd), route);
    errno = saved;
    return route->kind != NS_ROUTE_NONE;
}

/* An error that the program caused, not the door. */
static int is_the_programs(int error)
{
    return error == EISCONN || error == EALREADY || error == EBADF || error == ENOTSOCK || error == EAFNOSUPPORT ||
           error == EINVAL || error == EPROTOTYPE || error == EOPNOTSUPP;
}

/* 0 or the errno. A connection without its preamble is useless and is ended; so is one in progress. */
static int connect_within(int fd, const struct ns_route *route, int64_t deadline)
{
    int before;
    int failed;

    if (ns_door_reach(fd, route->name, route->length, deadline) != 0) {
        if (is_the_programs(errno))
            return errno;
        if (errno == ETIMEDOUT)
            shutdown(fd, SHUT_RDWR);
        return ECONNREFUSED;
    }
    before = ns_quiet(fd);
    failed = ns_door_tell(fd, &route->preamble, sizeof route->preamble, deadline);
    ns_loud(fd, before);
    if (failed)
        shutdown(fd, SHUT_RDWR);
    return failed ? ECONNREFUSED : 0;
}

/* A blocking socket is non-blocking during the connect. The program does not use it before it is connected. */
static int connect_egress(int fd, const struct ns_route *route)
{
    int flags = fcntl(fd, F_GETFL);
    int blocks = flags >= 0 && (flags & O_NONBLOCK) == 0;
    int cancelling;
    int error;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    if (blocks)
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    error = connect_within(fd, route, ns_deadline(PATIENCE_MS));
    if (blocks)
        fcntl(fd, F_SETFL, flags);
    pthread_setcancelstate(cancelling, NULL);
    return error;
}

void ns_egress_datagram(int fd, const void *name, socklen_t length, struct ns_plan *plan)
{
    struct ns_route route;
    int saved = errno;

    ns_route_plan(ns_session_map(), name, length, AF_INET, NS_UDP, &route);
    if (route.kind != NS_ROUTE_NONE && protocol_of(fd) == NS_UDP) {
        plan->verdict = route.kind == NS_ROUTE_REFUSE ? NS_REFUSE : NS_CHANGED;
        plan->error = EACCES;
        plan->length = route.length;
        memcpy(plan->name, route.name, sizeof route.name);
        ns_peer_set(fd, name, length, AF_INET);
    }
    errno = saved;
}

int ns_egress_connect(int fd, const void *name, socklen_t length, const struct ns_route *route)
{
    int saved = errno;
    int error = EACCES;

    if (route->kind == NS_ROUTE_EGRESS)
        error = connect_egress(fd, route);
    else if (route->kind == NS_ROUTE_RESOLVER)
        error = REAL(connect)(fd, (const struct sockaddr *)(const void *)route->name, route->length) == 0 ? 0 : errno;
    if (error == 0 || error == EINPROGRESS || error == EINTR)
        ns_peer_set(fd, name, length, AF_INET);
    errno = error == 0 ? saved : error;
    return error == 0 ? 0 : -1;
}

#endif
