#define _GNU_SOURCE
#include "netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"

static const char *name_of(int protocol)
{
    return protocol == NETLINK_NETFILTER ? "loading the capture rules (nftables tproxy)" : "configuring loopback";
}

/* Counts the acknowledgements in one datagram; an error in one of them ends the process. */
static uint32_t count(char *buffer, size_t length, int protocol)
{
    uint32_t seen = 0;

    for (struct nlmsghdr *header = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(header, length);
         header = NLMSG_NEXT(header, length)) {
        const struct nlmsgerr *answer = NLMSG_DATA(header);

        if (header->nlmsg_type != NLMSG_ERROR)
            continue;
        if (answer->error != 0) {
            errno = -answer->error;
            fail(name_of(protocol));
        }
        seen++;
    }
    return seen;
}

void netlink_replay(int protocol, const void *messages, size_t length, uint32_t acknowledgements)
{
    _Alignas(struct nlmsghdr) char buffer[8192];
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

    if (descriptor < 0)
        fail(name_of(protocol));
    if (sendto(descriptor, messages, length, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        fail(name_of(protocol));
    while (acknowledgements > 0) {
        ssize_t received = recv(descriptor, buffer, sizeof buffer, 0);
        uint32_t seen;

        if (received <= 0)
            fail(name_of(protocol));
        seen = count(buffer, (size_t)received, protocol);
        acknowledgements -= seen < acknowledgements ? seen : acknowledgements;
    }
    close(descriptor);
}
