/* Asking the session's resolver for the addresses of a name, in the place of the system's. */
#ifndef NETSANDBOX_RESOLVER_H
#define NETSANDBOX_RESOLVER_H

#include "dns.h"
#include "egress.h"

#ifdef NS_EGRESS

#define NS_RESOLVER_ABSENT (-1)    /* there is no map, or none with a resolver: the system's function is to be called */
#define NS_RESOLVER_UNREACHED (-2) /* its door is gone, or the map makes no sense */
#define NS_RESOLVER_SILENT (-3)    /* it did not answer */

/* NS_DNS_FOUND, NS_DNS_NONE, NS_DNS_FAILED or one of the above. Takes three seconds at most. Keeps errno. */
int ns_resolve(const char *name, struct ns_addresses *found);
/* 1 for an address in numbers, in any of the ways that inet_aton(3) and inet_pton(3) know. */
int ns_is_number(const char *name);

#endif
#endif
