/* getaddrinfo. While the session has a resolver, the system's resolver gets no name. It only parses numbers, so that
 * every list comes from the system and its freeaddrinfo frees it; a name with several addresses is a chain of such
 * lists. */
#include "resolver.h"

#ifdef NS_EGRESS

#include "hook.h"
#include "sockaddr.h"
#include "session.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#ifdef AI_V4MAPPED_CFG /* if the kernel can do it, as Darwin's can */
#define WITHIN_IPV6 (AI_V4MAPPED | AI_V4MAPPED_CFG)
#else
#define WITHIN_IPV6 AI_V4MAPPED
#endif

struct request {
    const char *service;
    struct addrinfo hints; /* for numbers */
    struct addrinfo *first;
    struct addrinfo *last;
};

static int add(struct request *request, const char *number)
{
    struct addrinfo *more = NULL;
    int error = REAL(getaddrinfo)(number, request->service, &request->hints, &more);

    if (error != 0)
        return error;
    if (request->first == NULL)
        request->first = more;
    else
        request->last->ai_next = more;
    for (request->last = more; request->last->ai_next != NULL;)
        request->last = request->last->ai_next;
    return 0;
}

static int add_localhost(struct request *request)
{
    int error = 0;

    if (request->hints.ai_family != AF_INET6)
        error = add(request, "127.0.0.1");
    if (error == 0 && request->hints.ai_family != AF_INET)
        error = add(request, "::1");
    return error;
}

static void write_number(const uint8_t *v4, int within6, char *number)
{
    struct sockaddr_in6 name;

    ns_sockaddr_set_v4(&name, AF_INET6, v4);
    if (within6)
        inet_ntop(AF_INET6, &name.sin6_addr, number, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET, v4, number, INET6_ADDRSTRLEN);
}

static int add_addresses(struct request *request, const struct ns_addresses *found)
{
    int within6 = request->hints.ai_family == AF_INET6;
    int error = 0;

    if (within6 && (request->hints.ai_flags & WITHIN_IPV6) == 0)
        return EAI_NONAME;
    for (uint32_t one = 0; one < found->count && error == 0; one++) {
        char number[INET6_ADDRSTRLEN];

        write_number(found->address[one], within6, number);
        error = add(request, number);
    }
    return error;
}

static int failure(int outcome)
{
    if (outcome == NS_DNS_NONE)
        return EAI_NONAME;
    return outcome == NS_RESOLVER_UNREACHED ? EAI_FAIL : EAI_AGAIN;
}

/* The requested name, without the dot at its end: the session's resolver knows no canonical name. */
static int name_it(struct addrinfo *first, const char *node)
{
    char *name = strdup(node);
    size_t length = strlen(node);

    if (name == NULL)
        return EAI_MEMORY;
    if (length > 1 && name[length - 1] == '.')
        name[length - 1] = '\0';
    free(first->ai_canonname);
    first->ai_canonname = name;
    return 0;
}

static int give(struct request *request, int error, int named, const char *node, struct addrinfo **result)
{
    if (error == 0 && named)
        error = name_it(request->first, node);
    if (error == 0)
        *result = request->first;
    else if (request->first != NULL)
        freeaddrinfo(request->first);
    return error;
}

HOOK(int, getaddrinfo, const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    struct request request = {.service = service};
    struct ns_addresses found;
    int named;
    int outcome;

    if (node == NULL || ns_session_map() == NULL || (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0))
        return REAL(getaddrinfo)(node, service, hints, result);
    if (hints != NULL)
        request.hints = *hints;
    named = (request.hints.ai_flags & AI_CANONNAME) != 0;
    request.hints.ai_flags |= AI_NUMERICHOST;
    if (node[0] == '\0' || strchr(node, ':') != NULL || ns_is_number(node))
        return REAL(getaddrinfo)(node, service, &request.hints, result);
    request.hints.ai_flags &= ~(AI_CANONNAME | AI_ADDRCONFIG);
    if (ns_dns_is_localhost(node))
        return give(&request, add_localhost(&request), named, node, result);
    outcome = ns_resolve(node, &found);
    if (outcome == NS_RESOLVER_ABSENT)
        return REAL(getaddrinfo)(node, service, hints, result);
    return give(&request, outcome == NS_DNS_FOUND ? add_addresses(&request, &found) : failure(outcome), named, node, result);
}

#endif
