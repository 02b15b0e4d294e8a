/* bind and listen: the map has the socket's port, or the supervisor decides. A stream socket that listens without a
 * bind is bound here first, since the kernel would choose a port outside the window. */
#include "bind_request.h"
#include "hook.h"
#include "readable_memory.h"
#include "session.h"
#include "address_spelling.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define TCP 6
#define UDP 17
#define ATTEMPTS 4 /* for "any port": the port of a reply may be taken a moment later */

static int option(int fd, int level, int name)
{
    int value = 0;
    socklen_t size = sizeof value;

    return getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* One attempt at an address that needs a request. */
static int bind_requested(int fd, const struct sockaddr *name, socklen_t length, struct ns_plan *plan)
{
    const struct ns_map *map = ns_session_map();
    uint32_t protocol = option(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM ? TCP : UDP;
    uint16_t port = 0;
    int error = ns_bind_request(map, plan, protocol, &port);

    if (error != 0)
        return refuse(error);
    ns_plan_answer(map, name, length, port, plan);
    if (plan->verdict == NS_REFUSE)
        return refuse(plan->error);
    if (plan->verdict == NS_PASS)
        return REAL(bind)(fd, name, length);
    return REAL(bind)(fd, (const struct sockaddr *)(const void *)plan->name, plan->length);
}

static int bind_any(int fd, const struct sockaddr *name, socklen_t length, const struct ns_plan *given)
{
    for (int attempt = 1;; attempt++) {
        struct ns_plan plan = *given;
        int result = bind_requested(fd, name, length, &plan);

        if (result == 0 || errno != EADDRINUSE || given->port != 0 || attempt == ATTEMPTS)
            return result;
    }
}

static int bind_planned(int fd, const struct sockaddr *name, socklen_t length, const struct ns_plan *plan)
{
    if (plan->verdict == NS_REFUSE)
        return refuse(plan->error);
    if (plan->verdict == NS_PASS)
        return REAL(bind)(fd, name, length);
    if (plan->dual && option(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 1)
        return refuse(EADDRNOTAVAIL);
    if (plan->verdict == NS_CHANGED)
        return REAL(bind)(fd, (const struct sockaddr *)(const void *)plan->name, plan->length);
    return bind_any(fd, name, length, plan);
}

/* Raw, ping and packet sockets have no ports, although their addresses have the field. */
static int has_ports(int fd)
{
    int type = option(fd, SOL_SOCKET, SO_TYPE);
#ifdef SO_PROTOCOL
    int protocol = option(fd, SOL_SOCKET, SO_PROTOCOL);

    if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6)
        return 0;
#endif
    return type == SOCK_STREAM || type == SOCK_DGRAM || type == SOCK_SEQPACKET;
}

static int bind_name(int fd, const struct sockaddr *name, socklen_t length)
{
    int saved = errno;
    struct ns_plan plan;
    int result;

    ns_plan_bind(ns_session_map(), name, length, &plan);
    if (plan.verdict != NS_PASS && !has_ports(fd)) {
        errno = saved;
        return REAL(bind)(fd, name, length);
    }
    result = bind_planned(fd, name, length, &plan);
    if (result == 0) {
        ns_spelling_set(fd, plan.spelling, NS_SPELT_DEFAULT);
        errno = saved;
    }
    return result;
}

HOOK(int, bind, int fd, const struct sockaddr *name, socklen_t length)
{
    struct sockaddr_storage copy;

    if (length > sizeof copy || !ns_readable(name, length))
        return REAL(bind)(fd, name, length);
    memcpy(&copy, name, length); /* checked and used, so another thread cannot change it in between */
    return bind_name(fd, (const struct sockaddr *)&copy, length);
}

static uint16_t port_of(const struct sockaddr_storage *name)
{
    uint16_t port; /* at the same offset in both families */

    memcpy(&port, (const char *)name + offsetof(struct sockaddr_in, sin_port), sizeof port);
    return port;
}

/* 0 if listen may proceed. */
static int settle(int fd)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof name;

    if (REAL(getsockname)(fd, (struct sockaddr *)&name, &length) != 0 || !ns_is_local(&name, length))
        return 0;
    if (ns_session_map() == NULL)
        return refuse(EACCES);
    if (port_of(&name) != 0 || option(fd, SOL_SOCKET, SO_TYPE) != SOCK_STREAM)
        return 0;
    return bind_name(fd, (const struct sockaddr *)&name, length);
}

HOOK(int, listen, int fd, int backlog)
{
    int saved = errno;

    if (settle(fd) != 0)
        return -1;
    errno = saved;
    return REAL(listen)(fd, backlog);
}
