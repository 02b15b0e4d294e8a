/* The port map: a file that the supervisor writes and every process of the session maps read-only, and the messages by
 * which a process asks for what the map does not hold yet. This is the only definition: the preload library includes it,
 * and Python reads it through cffi (what stands between the two `cdef` lines is given to cffi as it is).
 *
 * One window port stands for one port that a program asked for, whatever the protocol: slot i belongs to port base + i.
 * The mapping is one to one, so it can be read in both directions and no program needs to remember anything. There is a
 * table for each direction, so that a look-up takes the same time in a window of any size.
 *
 * A port that is asked for as "any" (0) is answered with a free port of the window whose slot then holds that port itself,
 * and so is a port that already is a free one of the window: whoever asks for what it would get anyway gets just that.
 *
 * Reading is by seqlock: `sequence` is odd while the supervisor writes. A reader that sees it change reads again. Nothing
 * in the file is trusted further than its bounds: whoever finds nonsense acts as if there were no map, and refuses.
 */
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
    uint32_t size;          /* of this struct, for whoever was built with another one */
    uint32_t sequence;      /* seqlock */
    uint32_t strategy;      /* NS_STRATEGY_… */
    uint8_t device[4];      /* the session's loopback address; 0.0.0.0: any loopback address (strategy fail) */
    uint16_t base;          /* first port of the window, host order, as every port here */
    uint16_t count;         /* ports in the window, at most NS_MAP_SLOTS */
    uint16_t door;          /* where the supervisor is asked, on 127.0.0.1 */
    uint16_t passing_count;
    uint16_t egress;        /* the door on localhost that takes connections for elsewhere, behind an ns_preamble; 0: none */
    uint16_t resolver;      /* the door on localhost that answers DNS; 0: none */
    uint8_t token[NS_TOKEN_BYTES]; /* proves to the supervisor that the asker can read this file */
    uint16_t passing[NS_MAP_PASSING]; /* ports of 127.0.0.1 that are never rewritten: doors, ports of the host */
    uint16_t asked[NS_MAP_SLOTS];     /* slot i: the port that a program asked for, or 0 for none */
    uint16_t window[NS_MAP_PORTS];    /* entry i: the window port that stands for port i, or 0 for none */
};

struct ns_request {
    uint32_t magic;
    uint16_t operation;     /* NS_REQUEST_BIND */
    uint16_t port;          /* the port that the program asked for; 0: any */
    uint8_t address[4];     /* where it wants to bind, as IPv4; 0.0.0.0 for a wildcard, ::1 is 127.0.0.1 */
    uint32_t protocol;      /* 6 TCP, 17 UDP */
    uint8_t token[NS_TOKEN_BYTES];
};

struct ns_reply {
    uint32_t magic;         /* NS_MAP_MAGIC, here and in the request; anything else is no reply */
    int32_t error;          /* 0, or the errno that the program gets */
    uint16_t port;          /* the port to bind when error is 0; strategy device keeps what was asked, and 0 stays 0 */
    uint16_t reserved;
};

/* What is sent before anything else on a connection that was meant for elsewhere. No reply: what may not pass is reset. */
#define NS_PREAMBLE 1

struct ns_preamble {
    uint8_t version;        /* NS_PREAMBLE: no letter, and no version of SOCKS */
    uint8_t family;         /* 4 or 6 */
    uint8_t port[2];        /* where it was meant to go, in network order */
    uint8_t address[16];    /* the same; of IPv4 the first four bytes, and zeros */
    uint8_t token[NS_TOKEN_BYTES];
};
/* end of cdef */

#endif
