/* An internet address and port as the broker compares and sends them: always 16 bytes, an IPv4 address mapped (RFC 4291,
 * 2.5.5.2), the port in host order. */
#ifndef NETSANDBOX_PLACE_H
#define NETSANDBOX_PLACE_H

#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct place {
    uint8_t address[16];
    uint16_t port;
    uint16_t unused;
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_nl netlink;
    struct sockaddr_storage space;
    char bytes[sizeof(struct sockaddr_storage) + 1];
};

struct place place_of_ipv4(uint32_t address, uint16_t port); /* host order */

/* Reads the address of a call on a socket of *family*. 0, or the errno that the kernel gives. */
int place_read(int family, const union address *address, socklen_t length, struct place *into);

/* Writes it as a socket of *family* shows it; the length. */
socklen_t place_write(int family, const struct place *place, union address *into);

int is_ipv4(const struct place *place);
int is_unspecified(const struct place *place); /* 0.0.0.0 or :: */
int is_localhost(const struct place *place);   /* 127.0.0.1 or ::1 */
int is_loopback(const struct place *place);    /* 127.0.0.0/8 or ::1 */
int same_place(const struct place *one, const struct place *other);

#endif
