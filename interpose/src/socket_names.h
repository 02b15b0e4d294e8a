/* The buffer that a program provides for an address. One that fits any internet address goes to the kernel unchanged. A
 * smaller one is filled from a buffer of ours, since a truncated address cannot be converted back. */
#ifndef NETSANDBOX_SOCKET_NAMES_H
#define NETSANDBOX_SOCKET_NAMES_H

#include <stdint.h>
#include <sys/socket.h>

struct ns_room {
    struct sockaddr *name;
    socklen_t *length;
    socklen_t size;     /* the size that the program gave */
    socklen_t written;  /* for the kernel: the buffer's size in, the address's size out */
    struct sockaddr_storage own;
};

/* -1: no address is wanted, or a bad pointer that the kernel must report. */
int ns_room_open(struct ns_room *room, struct sockaddr *name, socklen_t *length);
struct sockaddr *ns_room_name(struct ns_room *room);
/* After a success: the address as the program knows it, truncated to its buffer as the kernel would do. */
void ns_room_close(struct ns_room *room, int peer, uint32_t spelling);

#define NS_NO_PEER (-1)
/* The same for a whole address, in place. *peer* is the descriptor whose peer this is, or NS_NO_PEER. */
void ns_name_known(int peer, uint32_t spelling, void *name, socklen_t length);

#endif
