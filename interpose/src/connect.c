/* connect, and macOS's connectx. */
#include "door.h"
#include "egress.h"
#include "hook.h"
#include "readable_memory.h"
#include "peer_addresses.h"
#include "rewrite.h"
#include "session.h"
#include "address_spelling.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* connect(2) with AF_UNSPEC dissolves an association; the socket keeps its own name. */
static int forgets_peer(const struct sockaddr_storage *name, socklen_t length)
{
    return length < sizeof(struct sockaddr) || name->ss_family == AF_UNSPEC;
}

#ifdef __APPLE__
/* The family that AF_UNSPEC means. Darwin treats it as AF_INET unless the socket is a datagram socket. */
static int unspecified(int fd, const struct sockaddr *name, socklen_t length)
{
    int saved = errno;
    int type = SOCK_DGRAM;
    socklen_t size = sizeof type;

    if (length != sizeof(struct sockaddr_in) || name->sa_family != AF_UNSPEC)
        return AF_UNSPEC;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    errno = saved;
    return type != SOCK_DGRAM ? AF_INET : AF_UNSPEC;
}
#else
static int unspecified(int fd, const struct sockaddr *name, socklen_t length)
{
    (void)fd, (void)name, (void)length;
    return AF_UNSPEC;
}
#endif

/* 1 if the connection goes to a door by the route; 0 if the plan applies. */
static int plan_connect(int fd, const struct sockaddr *name, socklen_t length, struct ns_plan *plan,
                        struct ns_route *route)
{
    int family = unspecified(fd, name, length);

    if (family == AF_INET)
        ns_plan_send(ns_session_map(), name, length, plan);
    else
        ns_plan_connect(ns_session_map(), name, length, plan);
    return plan->verdict == NS_PASS && ns_egress_route(fd, name, length, family, route);
}

/* Returns the result. A socket that is connected elsewhere, or about to be, has no door as its peer. */
static int connected(int fd, int result)
{
    if (result == 0 || errno == EINPROGRESS || errno == EINTR)
        ns_peer_forget(fd);
    return result;
}

/* The checked copy is used: another thread may overwrite the program's address while the kernel reads it. */
HOOK(int, connect, int fd, const struct sockaddr *name, socklen_t length)
{
    struct sockaddr_storage copy;
    struct ns_plan plan;
    struct ns_route route;

    if (length > sizeof copy || !ns_readable(name, length))
        return REAL(connect)(fd, name, length);
    memcpy(&copy, name, length);
    if (plan_connect(fd, (const struct sockaddr *)&copy, length, &plan, &route))
        return ns_egress_connect(fd, &copy, length, &route);
    if (plan.verdict == NS_REFUSE) {
        errno = plan.error;
        return -1;
    }
    if (plan.verdict == NS_CHANGED || !forgets_peer(&copy, length))
        ns_spelling_set(fd, plan.spelling, plan.spelling);
    if (plan.verdict == NS_PASS)
        return connected(fd, REAL(connect)(fd, (const struct sockaddr *)&copy, length));
    return connected(fd, REAL(connect)(fd, (const struct sockaddr *)(const void *)plan.name, plan.length));
}

#ifdef __APPLE__
/* What connectx does besides connecting, for a connection through a door: the count, the number that Darwin gives to
 * the only connection of TCP, and the data. Data that could not be sent is not counted; the next write reports the
 * error. */
static void finish_connectx(int fd, const struct iovec *data, unsigned int count, size_t *sent,
                            sae_connid_t *connection)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)data, .msg_iovlen = (int)count};
    int saved = errno;
    ssize_t done = 0;

    if (data != NULL && count > 0) {
        int before = ns_quiet(fd);

        done = REAL(sendmsg)(fd, &message, 0);
        ns_loud(fd, before);
    }
    if (sent != NULL)
        *sent = done > 0 ? (size_t)done : 0;
    if (connection != NULL)
        *connection = 1;
    errno = saved;
}

/* The source address is ignored: localhost has only one route. */
static int connectx_to_door(int fd, const sa_endpoints_t *ends, const struct ns_route *route, const struct iovec *data,
                            unsigned int count, size_t *sent, sae_connid_t *connection)
{
    int result = ns_egress_connect(fd, ends->sae_dstaddr, ends->sae_dstaddrlen, route);

    if (result == 0 || errno == EINPROGRESS)
        finish_connectx(fd, data, result == 0 ? count : 0, sent, connection);
    return result;
}

/* The kernel gets no source address: setting one is a bind, which needs a request to the supervisor. */
HOOK(int, connectx, int fd, const sa_endpoints_t *ends, sae_associd_t association, unsigned int flags,
     const struct iovec *data, unsigned int count, size_t *sent, sae_connid_t *connection)
{
    sa_endpoints_t changed;
    struct ns_plan plan;
    struct ns_route route;

    if (!ns_readable(ends, sizeof changed) || !ns_readable(ends->sae_dstaddr, ends->sae_dstaddrlen))
        return REAL(connectx)(fd, ends, association, flags, data, count, sent, connection);
    changed = *ends;
    if (plan_connect(fd, ends->sae_dstaddr, ends->sae_dstaddrlen, &plan, &route))
        return connectx_to_door(fd, ends, &route, data, count, sent, connection);
    if (plan.verdict == NS_REFUSE) {
        errno = plan.error;
        return -1;
    }
    if (plan.verdict == NS_CHANGED) {
        changed.sae_dstaddr = (const struct sockaddr *)(const void *)plan.name;
        changed.sae_dstaddrlen = plan.length;
        ns_spelling_set(fd, plan.spelling, plan.spelling);
    }
    return connected(fd, REAL(connectx)(fd, &changed, association, flags, data, count, sent, connection));
}
#endif
