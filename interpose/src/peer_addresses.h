/* The peer that a program requested for a descriptor, if the real peer is a door of ours. */
#ifndef NETSANDBOX_PEER_ADDRESSES_H
#define NETSANDBOX_PEER_ADDRESSES_H

#include "egress.h"

#ifdef NS_EGRESS
/* An internet address; *unspecified* is the family that AF_UNSPEC means. Descriptors beyond the table have none. */
void ns_peer_set(int fd, const void *name, uint32_t length, int unspecified);
void ns_peer_forget(int fd);
/* In place: the door's address from the kernel becomes the one that the program requested. 1 if it did. */
int ns_peer_restore(const struct ns_map *map, int fd, void *name, uint32_t length);
#else
static inline void ns_peer_forget(int fd)
{
    (void)fd;
}
static inline void ns_peer_set(int fd, const void *name, uint32_t length, int unspecified)
{
    (void)fd, (void)name, (void)length, (void)unspecified;
}
static inline int ns_peer_restore(const struct ns_map *map, int fd, void *name, uint32_t length)
{
    (void)map, (void)fd, (void)name, (void)length;
    return 0;
}
#endif

#endif
