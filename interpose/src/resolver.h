/* Queries the session's resolver for the addresses of a name, instead of the system's. */
#ifndef NETSANDBOX_RESOLVER_H
#define NETSANDBOX_RESOLVER_H

#include "dns.h"
#include "egress.h"

#ifdef NS_EGRESS

#define NS_RESOLVER_ABSENT (-1)    /* there is no map, or none with a resolver: call the system's function */
#define NS_RESOLVER_UNREACHED (-2) /* its door is gone, or the map is invalid */
#define NS_RESOLVER_SILENT (-3)    /* it did not reply */

/* NS_DNS_FOUND, NS_DNS_NONE, NS_DNS_FAILED or one of the above, after at most three seconds. Keeps errno. */
int ns_resolve(const char *name, struct ns_addresses *found);
/* 1 for a numeric address, in any of the forms of inet_aton(3) and inet_pton(3). */
int ns_is_number(const char *name);

#endif
#endif
