/* How a program wrote the address of each descriptor (strategy device). 127.0.0.1, ::1, 0.0.0.0, :: and the device
 * itself all become the device; the way back must give each program its own spelling. */
#ifndef NETSANDBOX_ADDRESS_SPELLING_H
#define NETSANDBOX_ADDRESS_SPELLING_H

#include <stdint.h>

/* NS_SPELT_… (rewrite.h). Descriptors beyond the table have the default. */
void ns_spelling_set(int fd, uint32_t local, uint32_t peer);
uint32_t ns_spelling_local(int fd);
uint32_t ns_spelling_peer(int fd);

#endif
