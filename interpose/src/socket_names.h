/* The room that a program gives for an address. One that holds any internet address goes to the kernel as it is; a
 * smaller one is filled from a room of our own, since a cut address can't be read back. */
#ifndef NETSANDBOX_SOCKET_NAMES_H
#define NETSANDBOX_SOCKET_NAMES_H

#include <stdint.h>
#include <sys/socket.h>

struct ns_room {
    struct sockaddr *name;
    socklen_t *length;
    socklen_t size;     /* what the program said that it has */
    socklen_t written;  /* for the kernel: in the room's size, out the address's */
    struct sockaddr_storage own;
};

/* -1: there is no address wanted, or a bad pointer that the kernel shall judge. */
int ns_room_open(struct ns_room *room, struct sockaddr *name, socklen_t *length);
struct sockaddr *ns_room_name(struct ns_room *room);
/* After a success: the address as the program knows it, cut to its room as the kernel would. */
void ns_room_close(struct ns_room *room, int peer, uint32_t spelling);

#define NS_NO_PEER (-1)
/* The same for a whole address, in place. *peer* is the descriptor whose peer this is, or NS_NO_PEER. */
void ns_name_known(int peer, uint32_t spelling, void *name, socklen_t length);

#endif
