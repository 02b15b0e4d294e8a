/* connect, and macOS's connectx. */
#include "hook.h"
#include "memory.h"
#include "rewrite.h"
#include "session.h"
#include "spelling.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* connect(2) to no family dissolves an association; the socket keeps its own name. */
static int forgets_peer(const struct sockaddr_storage *name, socklen_t length)
{
    return length < sizeof(struct sockaddr) || name->ss_family == AF_UNSPEC;
}

#ifdef __APPLE__
/* Darwin takes no family for AF_INET unless the socket is a datagram socket. */
static int means_in(int fd, const struct sockaddr *name, socklen_t length)
{
    int saved = errno;
    int type = SOCK_DGRAM;
    socklen_t size = sizeof type;

    if (length != sizeof(struct sockaddr_in) || name->sa_family != AF_UNSPEC)
        return 0;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    errno = saved;
    return type != SOCK_DGRAM;
}
#else
static int means_in(int fd, const struct sockaddr *name, socklen_t length)
{
    (void)fd, (void)name, (void)length;
    return 0;
}
#endif

static void plan_connect(int fd, const struct sockaddr *name, socklen_t length, struct ns_plan *plan)
{
    if (means_in(fd, name, length))
        ns_plan_send(ns_session_map(), name, length, plan);
    else
        ns_plan_connect(ns_session_map(), name, length, plan);
}

/* The copy is what was judged: another thread may write over the program's own while the kernel reads it. */
HOOK(int, connect, int fd, const struct sockaddr *name, socklen_t length)
{
    struct sockaddr_storage copy;
    struct ns_plan plan;

    if (length > sizeof copy || !ns_readable(name, length))
        return REAL(connect)(fd, name, length);
    memcpy(&copy, name, length);
    plan_connect(fd, (const struct sockaddr *)&copy, length, &plan);
    if (plan.verdict == NS_REFUSE) {
        errno = plan.error;
        return -1;
    }
    if (plan.verdict == NS_CHANGED || !forgets_peer(&copy, length))
        ns_spelling_set(fd, plan.spelling, plan.spelling);
    if (plan.verdict == NS_PASS)
        return REAL(connect)(fd, (const struct sockaddr *)&copy, length);
    return REAL(connect)(fd, (const struct sockaddr *)(const void *)plan.name, plan.length);
}

#ifdef __APPLE__
/* A source address is left to the kernel: naming one is binding, and bind is where the supervisor is asked. */
HOOK(int, connectx, int fd, const sa_endpoints_t *ends, sae_associd_t association, unsigned int flags,
     const struct iovec *data, unsigned int count, size_t *sent, sae_connid_t *connection)
{
    sa_endpoints_t changed;
    struct ns_plan plan;

    if (!ns_readable(ends, sizeof changed) || !ns_readable(ends->sae_dstaddr, ends->sae_dstaddrlen))
        return REAL(connectx)(fd, ends, association, flags, data, count, sent, connection);
    changed = *ends;
    plan_connect(fd, ends->sae_dstaddr, ends->sae_dstaddrlen, &plan);
    if (plan.verdict == NS_REFUSE) {
        errno = plan.error;
        return -1;
    }
    if (plan.verdict == NS_CHANGED) {
        changed.sae_dstaddr = (const struct sockaddr *)(const void *)plan.name;
        changed.sae_dstaddrlen = plan.length;
        ns_spelling_set(fd, plan.spelling, plan.spelling);
    }
    return REAL(connectx)(fd, &changed, association, flags, data, count, sent, connection);
}
#endif
