/* One question of DNS and its answer (RFC 1035): the addresses of IPv4 that a name has. Pure. */
#ifndef NETSANDBOX_DNS_H
#define NETSANDBOX_DNS_H

#include <stdint.h>

/* cdef */
#define NS_DNS_QUESTION 272 /* room for a question: header, the longest name, type and class; 271 are needed */
#define NS_DNS_ADDRESSES 16 /* more in one answer are left out */

#define NS_DNS_FOUND 0      /* there are addresses */
#define NS_DNS_NONE 1       /* no such name, none that may be asked for, or no address of IPv4 */
#define NS_DNS_FAILED 2     /* the resolver could not say */
#define NS_DNS_FOREIGN 3    /* no answer to this question, or bytes that are none: wait for another */

struct ns_addresses {
    uint32_t count;
    uint8_t address[NS_DNS_ADDRESSES][4];
};

/* Bytes of the question, or 0 for what is no name of the internet: empty, too long, a label too long or empty, or with
 * a byte that is not printable ASCII. One dot at the end is taken. */
uint32_t ns_dns_question(const char *name, uint16_t id, uint8_t *room);
/* NS_DNS_… for a message that came after the question. */
int32_t ns_dns_answer(const uint8_t *question, uint32_t question_length, const uint8_t *message, uint32_t length,
                      struct ns_addresses *found);
/* 1 for localhost and what ends in .localhost (RFC 6761), in any case, with one dot at the end or none. */
int ns_dns_is_localhost(const char *name);
/* end of cdef */

#endif
