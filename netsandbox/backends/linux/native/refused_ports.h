/* Connects and binds that fail at the session's own loopback, where a program may have meant the host's. The supervisor
 * gets one struct local_call and the program for each that is worth a message; the kernel has decided already. */
#ifndef NETSANDBOX_REFUSED_PORTS_H
#define NETSANDBOX_REFUSED_PORTS_H

#include <stdint.h>

enum local_kind {
    LOCAL_REFUSED = 'r',   /* connect(2): nothing listens at the port */
    LOCAL_CONNECTED = 'c', /* at a port that refused before */
    LOCAL_TAKEN = 't',     /* bind(2): the port is in use */
};

struct local_call {
    int32_t pid;
    uint32_t times; /* how often it was refused so far */
    uint16_t port;
    uint8_t kind;
    uint8_t unused;
};

/* Counts a connect to *port*. Returns how often the port has refused if that is worth a message, which is at the first,
 * second, fourth ... time; 1 if it answers after it refused; otherwise 0. */
uint32_t refused_times(uint16_t port, int is_refused);

#endif
