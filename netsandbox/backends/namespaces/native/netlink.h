/* Replays netlink messages that were encoded long ago (netsandbox/backends/namespaces/nft_bytes.py). */
#ifndef NETSANDBOX_NETLINK_H
#define NETSANDBOX_NETLINK_H

#include <stddef.h>
#include <stdint.h>

/* Sends the messages in one go and waits until *acknowledgements* came back; a refusal ends the process. */
void netlink_replay(int protocol, const void *messages, size_t length, uint32_t acknowledgements);

#endif
