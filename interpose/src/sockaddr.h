/* A parsed socket address, with the distinctions that this library needs. Pure. */
#ifndef NETSANDBOX_SOCKADDR_H
#define NETSANDBOX_SOCKADDR_H

#include <stdint.h>

extern const uint8_t NS_LOCALHOST[4]; /* 127.0.0.1 */
extern const uint8_t NS_UNSPECIFIED[16];  /* 0.0.0.0 and :: */
extern const uint8_t NS_LOOPBACK6[16];     /* ::1 */

enum ns_where { NS_ELSEWHERE, NS_LOOPBACK, NS_WILDCARD };

struct ns_sockaddr {
    enum ns_where where;
    int family;
    uint16_t port;
    uint8_t v4[4];     /* as IPv4: ::1 is 127.0.0.1 */
    int mapped;        /* 1: IPv4 within IPv6 */
    uint32_t spelling; /* NS_SPELT_… (rewrite.h) */
};

enum ns_where ns_sockaddr_where(const uint8_t *v4);
/* What the kernel does not accept as an internet address is elsewhere. *unspecified* is what AF_UNSPEC means. */
void ns_sockaddr_read(const void *name, uint32_t length, int unspecified, struct ns_sockaddr *place);
void ns_sockaddr_set_port(void *name, uint16_t port);
/* For a name of that family; IPv4 within IPv6 if it is AF_INET6. */
void ns_sockaddr_set_v4(void *name, int family, const uint8_t *v4);
/* The first bytes of an internet address as the kernel would return it; its length, at most NS_NAME_BYTES (28). */
uint32_t ns_sockaddr_copy(const void *name, uint32_t length, int family, void *copy);
/* 127.0.0.1 or ::1 for the family; its length, at most NS_NAME_BYTES. */
uint32_t ns_sockaddr_localhost(int family, uint16_t port, void *name);

#endif
