/* sendto, sendmsg, sendmmsg: as connect, for each datagram with its own destination. */
#include "egress.h"
#include "hook.h"
#include "readable_memory.h"
#include "rewrite.h"
#include "session.h"

#include <errno.h>
#include <string.h>

/* 0 if the address, or plan.name instead of it, must be used; -1 with errno if it is refused. */
static int plan_destination(int fd, const void *name, socklen_t length, struct ns_plan *plan)
{
    plan->verdict = NS_PASS;
    if (name == NULL || length > sizeof(struct sockaddr_storage) || !ns_readable(name, length))
        return 0;
    ns_plan_send(ns_session_map(), name, length, plan);
    if (plan->verdict == NS_PASS)
        ns_egress_datagram(fd, name, length, plan);
    if (plan->verdict != NS_REFUSE)
        return 0;
    errno = plan->error;
    return -1;
}

HOOK(ssize_t, sendto, int fd, const void *data, size_t size, int flags, const struct sockaddr *name, socklen_t length)
{
    struct ns_plan plan;

    if (plan_destination(fd, name, length, &plan) != 0)
        return -1;
    if (plan.verdict == NS_PASS)
        return REAL(sendto)(fd, data, size, flags, name, length);
    return REAL(sendto)(fd, data, size, flags, (const struct sockaddr *)(const void *)plan.name, plan.length);
}

HOOK(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    struct ns_plan plan;
    struct msghdr changed;

    if (!ns_readable(message, sizeof *message))
        return REAL(sendmsg)(fd, message, flags);
    changed = *message;
    if (plan_destination(fd, changed.msg_name, changed.msg_namelen, &plan) != 0)
        return -1;
    if (plan.verdict == NS_PASS)
        return REAL(sendmsg)(fd, message, flags);
    changed.msg_name = plan.name;
    changed.msg_namelen = plan.length;
    return REAL(sendmsg)(fd, &changed, flags);
}

#ifndef __APPLE__
#define AT_ONCE 16 /* keeps the copies small enough for a signal handler's stack */

/* The number of messages sent, at most AT_ONCE, or -1. */
static int send_some(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
    struct mmsghdr changed[AT_ONCE];
    struct ns_plan plans[AT_ONCE];
    unsigned int ready;
    int sent;

    for (ready = 0; ready < count; ready++) {
        changed[ready] = messages[ready];
        struct msghdr *header = &changed[ready].msg_hdr;
        if (plan_destination(fd, header->msg_name, header->msg_namelen, &plans[ready]) != 0)
            break;
        if (plans[ready].verdict == NS_CHANGED) {
            header->msg_name = plans[ready].name;
            header->msg_namelen = plans[ready].length;
        }
    }
    if (ready == 0)
        return -1;
    sent = REAL(sendmmsg)(fd, changed, ready, flags);
    for (int one = 0; one < sent; one++)
        messages[one].msg_len = changed[one].msg_len;
    return sent;
}

/* Like the kernel: an error after some messages were sent is a success. */
HOOK(int, sendmmsg, int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
    unsigned int done = 0;
    int saved = errno;

    if (count == 0)
        return REAL(sendmmsg)(fd, messages, count, flags);
    while (done < count) {
        unsigned int next = count - done < AT_ONCE ? count - done : AT_ONCE;
        int sent;

        if (!ns_readable(messages + done, next * sizeof *messages))
            sent = REAL(sendmmsg)(fd, messages + done, next, flags);
        else
            sent = send_some(fd, messages + done, next, flags);
        if (sent < 0 && done == 0)
            return -1;
        done += sent > 0 ? (unsigned int)sent : 0;
        if (sent < (int)next)
            break;
    }
    errno = saved;
    return (int)done;
}
#endif
