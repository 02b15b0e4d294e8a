#include "place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static const uint8_t MAPPED[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF };

struct place place_of_ipv4(uint32_t address, uint16_t port)
{
    struct place made = { .port = port };
    uint32_t ordered = htonl(address);

    memcpy(made.address, MAPPED, sizeof MAPPED);
    memcpy(made.address + 12, &ordered, sizeof ordered);
    return made;
}

int is_ipv4(const struct place *place)
{
    return memcmp(place->address, MAPPED, sizeof MAPPED) == 0;
}

int place_read(int family, const union address *address, socklen_t length, struct place *into)
{
    memset(into, 0, sizeof *into);
    if (length < sizeof(sa_family_t))
        return EINVAL;
    if (family == AF_INET) {
        if (length < sizeof address->v4)
            return EINVAL;
        if (address->any.sa_family != AF_INET)
            return EAFNOSUPPORT;
        *into = place_of_ipv4(ntohl(address->v4.sin_addr.s_addr), ntohs(address->v4.sin_port));
        return 0;
    }
    if (address->any.sa_family == AF_INET && length >= sizeof address->v4) {
        *into = place_of_ipv4(ntohl(address->v4.sin_addr.s_addr), ntohs(address->v4.sin_port));
        return 0;
    }
    if (length < 24) /* SIN6_LEN_RFC2133, without a scope */
        return EINVAL;
    if (address->any.sa_family != AF_INET6)
        return EAFNOSUPPORT;
    memcpy(into->address, &address->v6.sin6_addr, sizeof into->address);
    into->port = ntohs(address->v6.sin6_port);
    return 0;
}

socklen_t place_write(int family, const struct place *place, union address *into)
{
    memset(into, 0, sizeof *into);
    if (family == AF_INET) {
        into->v4.sin_family = AF_INET;
        into->v4.sin_port = htons(place->port);
        memcpy(&into->v4.sin_addr, place->address + 12, 4);
        return sizeof into->v4;
    }
    into->v6.sin6_family = AF_INET6;
    into->v6.sin6_port = htons(place->port);
    memcpy(&into->v6.sin6_addr, place->address, sizeof place->address);
    return sizeof into->v6;
}

int is_unspecified(const struct place *place)
{
    static const uint8_t none[16];

    return memcmp(place->address, none, sizeof none) == 0
        || (is_ipv4(place) && memcmp(place->address + 12, none, 4) == 0);
}

static int is_ipv6_loopback(const struct place *place)
{
    return memcmp(place->address, &in6addr_loopback, sizeof place->address) == 0;
}

int is_localhost(const struct place *place)
{
    static const uint8_t localhost[4] = { 127, 0, 0, 1 };

    return is_ipv6_loopback(place) || (is_ipv4(place) && memcmp(place->address + 12, localhost, 4) == 0);
}

int is_loopback(const struct place *place)
{
    return is_ipv6_loopback(place) || (is_ipv4(place) && place->address[12] == 127);
}

int same_place(const struct place *one, const struct place *other)
{
    return one->port == other->port && memcmp(one->address, other->address, sizeof one->address) == 0;
}
