/* Reads and writes sockaddr_in and sockaddr_in6 as bytes, since a program's own may be unaligned. */
#include "sockaddr.h"

#include "rewrite.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define SHORTEST_IN6 24  /* as in RFC 2133, without the scope; Linux still accepts it */
#define MAX_NAME 128 /* sizeof(struct sockaddr_storage): the kernel refuses longer ones */

const uint8_t NS_LOCALHOST[4] = {127, 0, 0, 1};
const uint8_t NS_UNSPECIFIED[16];
const uint8_t NS_LOOPBACK6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
static const uint8_t MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

enum ns_where ns_sockaddr_where(const uint8_t *v4)
{
    if (v4[0] == 127)
        return NS_LOOPBACK;
    return memcmp(v4, NS_UNSPECIFIED, 4) == 0 ? NS_WILDCARD : NS_ELSEWHERE;
}

static void read_in(const uint8_t *bytes, struct ns_sockaddr *place)
{
    memcpy(place->v4, bytes + offsetof(struct sockaddr_in, sin_addr), 4);
    place->where = ns_sockaddr_where(place->v4);
    place->spelling = place->where == NS_WILDCARD ? NS_SPELT_ANY4 : NS_SPELT_DEFAULT;
}

static void read_in6(const uint8_t *bytes, struct ns_sockaddr *place)
{
    const uint8_t *address = bytes + offsetof(struct sockaddr_in6, sin6_addr);

    if (memcmp(address, NS_LOOPBACK6, 16) == 0) {
        memcpy(place->v4, NS_LOCALHOST, 4);
        place->where = NS_LOOPBACK;
        place->spelling = NS_SPELT_ONE6;
    } else if (memcmp(address, NS_UNSPECIFIED, 16) == 0) {
        place->where = NS_WILDCARD;
        place->spelling = NS_SPELT_ANY6;
    } else if (memcmp(address, MAPPED, 12) == 0) {
        memcpy(place->v4, address + 12, 4);
        place->where = ns_sockaddr_where(place->v4);
        place->mapped = 1;
    }
}

void ns_sockaddr_read(const void *name, uint32_t length, int unspecified, struct ns_sockaddr *place)
{
    struct sockaddr head;
    uint16_t port;

    memset(place, 0, sizeof *place);
    if (name == NULL || length < sizeof(struct sockaddr_in) || length > MAX_NAME)
        return;
    memcpy(&head, name, sizeof head);
    place->family = head.sa_family == AF_UNSPEC ? unspecified : head.sa_family;
    if (place->family == AF_INET6 && length < SHORTEST_IN6)
        place->family = AF_UNSPEC;
    memcpy(&port, (const uint8_t *)name + offsetof(struct sockaddr_in, sin_port), sizeof port);
    place->port = ntohs(port);
    if (place->family == AF_INET)
        read_in(name, place);
    else if (place->family == AF_INET6)
        read_in6(name, place);
}

void ns_sockaddr_set_port(void *name, uint16_t port)
{
    port = htons(port);
    memcpy((uint8_t *)name + offsetof(struct sockaddr_in, sin_port), &port, sizeof port);
}

void ns_sockaddr_set_v4(void *name, int family, const uint8_t *v4)
{
    if (family == AF_INET) {
        memcpy((uint8_t *)name + offsetof(struct sockaddr_in, sin_addr), v4, 4);
        return;
    }
    memcpy((uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr), MAPPED, 12);
    memcpy((uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr) + 12, v4, 4);
}

/* Writes the head of a name whose other bytes are set or zero; returns its length. */
static uint32_t set_head(int family, void *name)
{
    uint32_t length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    struct sockaddr head;

    memcpy(&head, name, sizeof head);
    head.sa_family = (sa_family_t)family;
#ifdef __APPLE__
    head.sa_len = (uint8_t)length;
#endif
    memcpy(name, &head, sizeof head);
    return length;
}

uint32_t ns_sockaddr_copy(const void *name, uint32_t length, int family, void *copy)
{
    uint32_t telling = family == AF_INET ? offsetof(struct sockaddr_in, sin_zero) : NS_NAME_BYTES;

    memset(copy, 0, NS_NAME_BYTES);
    memcpy(copy, name, length < telling ? length : telling);
    return set_head(family, copy);
}

uint32_t ns_sockaddr_localhost(int family, uint16_t port, void *name)
{
    memset(name, 0, NS_NAME_BYTES);
    if (family == AF_INET)
        memcpy((uint8_t *)name + offsetof(struct sockaddr_in, sin_addr), NS_LOCALHOST, 4);
    else
        memcpy((uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr), NS_LOOPBACK6, 16);
    ns_sockaddr_set_port(name, port);
    return set_head(family, name);
}
