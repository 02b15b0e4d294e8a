/* The port map: a file that the supervisor writes and every process of the session maps read-only, and the messages
 * with which a process requests ports that the map does not have yet. This is the only definition: the preload library
 * includes it, and Python reads it through cffi (cffi gets the text between the two `cdef` lines unchanged).
 *
 * One window port stands for one port that a program requested, for every protocol: slot i belongs to port base + i.
 * The mapping is one to one, so it can be read in both directions and no program needs to keep state. Each direction
 * has a table, so that a look-up takes the same time in a window of any size.
 *
 * A request for any port (0) gets a free port of the window, whose slot then has that port itself. A request for a free
 * port of the window gets that port too.
 *
 * Readers use a seqlock: `sequence` is odd while the supervisor writes. A reader that sees it change reads again. The
 * content is trusted only within its bounds: a reader that finds it invalid refuses, as if there were no map. */
#ifndef NETSANDBOX_PORTMAP_H
#define NETSANDBOX_PORTMAP_H

#include <stdint.h>

/* cdef */
#define NS_MAP_MAGIC 0x4e534d50
#define NS_MAP_VERSION 3
#define NS_MAP_SLOTS 4096
#define NS_MAP_PORTS 65536
#define NS_MAP_PASSING 64
#define NS_TOKEN_BYTES 16

#define NS_STRATEGY_FAIL 1
#define NS_STRATEGY_DEVICE 2
#define NS_STRATEGY_PORT 3

#define NS_REQUEST_BIND 1

struct ns_map {
    uint32_t magic;
    uint32_t version;
    uint32_t size;          /* of this struct, for a reader that was built with another one */
    uint32_t sequence;      /* seqlock */
    uint32_t strategy;      /* NS_STRATEGY_… */
    uint8_t device[4];      /* the session's loopback address; 0.0.0.0: any loopback address (strategy fail) */
    uint16_t base;          /* first port of the window, host order, as every port here */
    uint16_t count;         /* ports in the window, at most NS_MAP_SLOTS */
    uint16_t door;          /* the supervisor's door for requests, on 127.0.0.1 */
    uint16_t passing_count;
    uint16_t egress;        /* the door on localhost for connections to elsewhere, after an ns_preamble; 0: none */
    uint16_t resolver;      /* the door on localhost that answers DNS; 0: none */
    uint8_t token[NS_TOKEN_BYTES]; /* proves to the supervisor that the sender can read this file */
    uint16_t passing[NS_MAP_PASSING]; /* ports of 127.0.0.1 that are never rewritten: doors, ports of the host */
    uint16_t requested[NS_MAP_SLOTS];     /* slot i: the port that a program requested, or 0 */
    uint16_t window[NS_MAP_PORTS];    /* entry i: the window port that stands for port i, or 0 */
};

struct ns_request {
    uint32_t magic;
    uint16_t operation;     /* NS_REQUEST_BIND */
    uint16_t port;          /* the port that the program requested; 0: any */
    uint8_t address[4];     /* the address to bind, as IPv4; 0.0.0.0 for a wildcard, ::1 is 127.0.0.1 */
    uint32_t protocol;      /* 6 TCP, 17 UDP */
    uint8_t token[NS_TOKEN_BYTES];
};

struct ns_reply {
    uint32_t magic;         /* NS_MAP_MAGIC, here and in the request; anything else is no reply */
    int32_t error;          /* 0, or the errno that the program gets */
    uint16_t port;          /* the port to bind if error is 0; strategy device keeps the requested one, and 0 stays 0 */
    uint16_t reserved;
};

/* The first bytes of a connection to elsewhere. There is no reply: a refused connection is reset. */
#define NS_PREAMBLE 1

struct ns_preamble {
    uint8_t version;        /* NS_PREAMBLE: not a letter, and not a SOCKS version */
    uint8_t family;         /* 4 or 6 */
    uint8_t port[2];        /* the requested port, in network order */
    uint8_t address[16];    /* the requested address; IPv4 in the first four bytes, then zeros */
    uint8_t token[NS_TOKEN_BYTES];
};
/* end of cdef */

#endif
