/* gethostbyname and gethostbyname2. Their result is in static memory of the library until that is reused. There are a
 * few buffers, used in turn, so that concurrent threads do not overwrite each other's result. */
#include "resolver.h"

#ifdef NS_EGRESS

#include "hook.h"
#include "sockaddr.h"
#include "session.h"

#include <netdb.h>
#include <string.h>

#define MAX_ANSWERS 16
#define MAX_NAME 256

struct answer {
    struct hostent host;
    char name[MAX_NAME];
    char *aliases[1];
    char *list[NS_DNS_ADDRESSES + 1];
    uint8_t addresses[NS_DNS_ADDRESSES][16];
};

static struct answer answers[MAX_ANSWERS];
static uint32_t used;

static struct hostent *refuse(int error)
{
    h_errno = error;
    return NULL;
}

static struct answer *begin(const char *name, int family)
{
    struct answer *answer = &answers[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % MAX_ANSWERS];
    size_t length = strlen(name);

    memset(answer, 0, sizeof *answer);
    if (length > 1 && name[length - 1] == '.')
        length--;
    memcpy(answer->name, name, length < sizeof answer->name ? length : sizeof answer->name - 1);
    answer->host.h_name = answer->name;
    answer->host.h_aliases = answer->aliases;
    answer->host.h_addrtype = family;
    answer->host.h_length = family == AF_INET ? 4 : 16;
    answer->host.h_addr_list = answer->list;
    return answer;
}

static struct hostent *give(const char *name, int family, const struct ns_addresses *found)
{
    struct answer *answer = begin(name, family);

    for (uint32_t one = 0; one < found->count; one++) {
        memcpy(answer->addresses[one], found->address[one], 4);
        answer->list[one] = (char *)answer->addresses[one];
    }
    return &answer->host;
}

static struct hostent *give_localhost(const char *name, int family)
{
    struct answer *answer = begin(name, family);

    memcpy(answer->addresses[0], family == AF_INET ? NS_LOCALHOST : NS_LOOPBACK6, (size_t)answer->host.h_length);
    answer->list[0] = (char *)answer->addresses[0];
    return &answer->host;
}

static int failure(int outcome)
{
    if (outcome == NS_DNS_NONE)
        return HOST_NOT_FOUND;
    return outcome == NS_RESOLVER_UNREACHED ? NO_RECOVERY : TRY_AGAIN;
}

HOOK(struct hostent *, gethostbyname2, const char *name, int family)
{
    struct ns_addresses found;
    int outcome;

    if (name == NULL || ns_session_map() == NULL || ns_is_number(name) || (family != AF_INET && family != AF_INET6))
        return REAL(gethostbyname2)(name, family);
    if (ns_dns_is_localhost(name))
        return give_localhost(name, family);
    outcome = ns_resolve(name, &found);
    if (outcome == NS_RESOLVER_ABSENT)
        return REAL(gethostbyname2)(name, family);
    if (outcome != NS_DNS_FOUND)
        return refuse(failure(outcome));
    return family == AF_INET ? give(name, family, &found) : refuse(NO_DATA);
}

HOOK(struct hostent *, gethostbyname, const char *name)
{
    return ns_gethostbyname2(name, AF_INET);
}

#endif
