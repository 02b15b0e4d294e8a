/* Replays pre-encoded netlink messages (netsandbox/backends/namespaces/plan.py). */
#ifndef NETSANDBOX_NETLINK_H
#define NETSANDBOX_NETLINK_H

#include <stddef.h>
#include <stdint.h>

/* Sends the messages at once and waits for *acknowledgements*; an error reply ends the process. */
void netlink_replay(int protocol, const void *messages, size_t length, uint32_t acknowledgements);

#endif
