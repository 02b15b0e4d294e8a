/* UDP, without a UDP socket. sendmsg(2) has its destination in memory, which no filter sees, so the command never gets a
 * socket that could reach anything: it gets one end of a pair of Unix sockets that keep the bounds of messages, a
 * stand-in. We have the other end, and emulate the calls that carry an address. A datagram goes to another stand-in of
 * the session, or to the supervisor, which answers DNS queries and records and drops the rest.
 *
 * both ways, over DOOR_DATAGRAMS: struct datagram, then the payload. `local` is the port of the stand-in. */
#ifndef NETSANDBOX_DATAGRAMS_H
#define NETSANDBOX_DATAGRAMS_H

#include "calls.h"

struct datagram {
    struct place remote; /* the destination; in a reply, where it came from */
    uint64_t inode;      /* of the stand-in */
    int32_t pid;
    uint16_t local;
    uint16_t unused;
};

int datagram_socket(const struct seccomp_notif *call, int family, int flags);
int datagram_connect(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length);
int datagram_bind(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length);

/* sendto, sendmsg, sendmmsg, recvfrom, recvmsg, recvmmsg on a stand-in. Each answers the call itself. */
void datagram_send(const struct seccomp_notif *call, struct entry *entry);
void datagram_receive(const struct seccomp_notif *call, struct entry *entry);

/* getsockname and getpeername: 0, or an errno. */
int datagram_name(const struct entry *entry, int is_peer, union address *into, socklen_t *length);

/* Starts the thread that takes what programs write to connected stand-ins, and what the supervisor replies. */
void datagrams_begin(void);

#endif
