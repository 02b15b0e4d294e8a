/* Rewrites an address: the rules of the three strategies, pure. The bytes of a sockaddr go in, and a plan comes out.
 * Nothing here makes a system call or keeps state, so that Python can test every rule separately. */
#ifndef NETSANDBOX_REWRITE_H
#define NETSANDBOX_REWRITE_H

#include "map.h"

/* cdef */
#define NS_PASS 0           /* use the address as it is */
#define NS_CHANGED 1        /* use plan.name instead */
#define NS_REQUEST 2            /* send a request to the supervisor, then call ns_plan_answer */
#define NS_REFUSE 3         /* fail with plan.error */

/* How a program wrote the session's device when it did not write 127.0.0.1 (strategy device). */
#define NS_SPELT_DEFAULT 0
#define NS_SPELT_ONE6 1     /* ::1 */
#define NS_SPELT_ANY4 2     /* 0.0.0.0 */
#define NS_SPELT_ANY6 3     /* :: */
#define NS_SPELT_DEVICE 4   /* the device itself */

#define NS_NAME_BYTES 28    /* the longest address that is rewritten: a sockaddr_in6 */

struct ns_plan {
    int32_t verdict;        /* NS_PASS, NS_CHANGED, NS_REQUEST or NS_REFUSE */
    int32_t error;          /* NS_REFUSE: the errno */
    uint16_t port;          /* the port that the program requested, for struct ns_request */
    uint8_t address[4];
    uint16_t dual;          /* 1: plan.name is IPv4 within IPv6, so the socket must not be IPV6_V6ONLY */
    uint32_t spelling;      /* NS_SPELT_…: how the program wrote the address */
    uint32_t length;        /* bytes of name */
    uint8_t name[NS_NAME_BYTES];
};

void ns_plan_bind(const struct ns_map *map, const void *name, uint32_t length, struct ns_plan *plan);
void ns_plan_connect(const struct ns_map *map, const void *name, uint32_t length, struct ns_plan *plan);
/* As connect, but AF_UNSPEC means AF_INET, as for sendto(2) on Linux; for connect it means: forget the peer. */
void ns_plan_send(const struct ns_map *map, const void *name, uint32_t length, struct ns_plan *plan);
/* Turns an NS_REQUEST of ns_plan_bind for the same name into NS_CHANGED with the port of the supervisor's reply. */
void ns_plan_answer(const struct ns_map *map, const void *name, uint32_t length, uint16_t port, struct ns_plan *plan);
/* The reverse, in place: an address from the kernel becomes the one that the program knows. 1 if anything changed. */
int ns_restore(const struct ns_map *map, uint32_t spelling, void *name, uint32_t length);
/* 1 for an internet address that is loopback or wildcard, 0 for every other. */
int ns_is_local(const void *name, uint32_t length);
/* end of cdef */

#endif
