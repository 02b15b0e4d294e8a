/* UDP, without a UDP socket: it leads to DNS or nowhere. sendmsg(2) has its destination in memory, which no filter sees, so
 * the command never gets a socket that could reach anything. It gets one end of a pair of Unix sockets that keep the bounds
 * of messages, a stand-in. We have the other end. What is written there goes to the supervisor, which answers DNS queries
 * and records and drops the rest; only its replies come back. Nobody sends to a stand-in otherwise, so a port that a program
 * asks for is refused. We emulate the calls that carry an address.
 *
 * both ways, over DOOR_DATAGRAMS: struct datagram, then the payload. `local` is the port of the stand-in. */
#ifndef NETSANDBOX_DATAGRAMS_H
#define NETSANDBOX_DATAGRAMS_H

#include "calls.h"

#define MAX_DATAGRAM 65507

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

/* sendto, sendmsg, sendmmsg, recvfrom, recvmsg, recvmmsg on a stand-in. Each answers the call itself, and is done with the
 * entry. */
void datagram_send(const struct seccomp_notif *call, struct entry *entry);
void datagram_receive(const struct seccomp_notif *call, struct entry *entry);

/* Sends a datagram of a stand-in to the supervisor. One that does not fit is lost, as UDP may. */
void datagram_route(const struct entry *entry, const struct place *wanted, const void *data, size_t length);

/* getsockname and getpeername: 0, or an errno. */
int datagram_name(const struct entry *entry, int is_peer, union address *into, socklen_t *length);

/* Starts the thread that takes what programs write to connected stand-ins, and what the supervisor replies. */
void datagrams_begin(void);

#endif
