/* One DNS query and its reply (RFC 1035): the IPv4 addresses of a name. Pure. */
#ifndef NETSANDBOX_DNS_H
#define NETSANDBOX_DNS_H

#include <stdint.h>

/* cdef */
#define NS_DNS_QUESTION 272 /* room for a query: header, the longest name, type and class; 271 are needed */
#define NS_DNS_ADDRESSES 16 /* further addresses of a reply are left out */

#define NS_DNS_FOUND 0      /* there are addresses */
#define NS_DNS_NONE 1       /* no such name, an invalid name, or no IPv4 address */
#define NS_DNS_FAILED 2     /* the resolver reported a failure */
#define NS_DNS_FOREIGN 3    /* no valid reply to this query: wait for another */

struct ns_addresses {
    uint32_t count;
    uint8_t address[NS_DNS_ADDRESSES][4];
};

/* The bytes of the query, or 0 for an invalid name: empty, too long, a label too long or empty, or a byte that is not
 * printable ASCII. One dot at the end is accepted. */
uint32_t ns_dns_question(const char *name, uint16_t id, uint8_t *room);
/* NS_DNS_… for a message that arrived after the query. */
int32_t ns_dns_answer(const uint8_t *question, uint32_t question_length, const uint8_t *message, uint32_t length,
                      struct ns_addresses *found);
/* 1 for localhost and names that end in .localhost (RFC 6761), in any case, with or without one dot at the end. */
int ns_dns_is_localhost(const char *name);
/* end of cdef */

#endif
