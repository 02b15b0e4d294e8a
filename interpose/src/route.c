/* The rules of route.h. Without a map there are no doors, and the kernel refuses (INV-7). */
#include "route.h"

#include "sockaddr.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

static int is_internet(const struct ns_sockaddr *place)
{
    return place->family == AF_INET || place->family == AF_INET6;
}

int ns_is_elsewhere(const void *name, uint32_t length, int unspecified)
{
    struct ns_sockaddr place;

    ns_sockaddr_read(name, length, unspecified, &place);
    return place.where == NS_ELSEWHERE && is_internet(&place);
}

static void write_preamble(const void *name, const struct ns_sockaddr *place, const struct ns_view *view,
                           struct ns_preamble *preamble)
{
    int is_v4 = place->family == AF_INET || place->mapped;

    preamble->version = NS_PREAMBLE;
    preamble->family = is_v4 ? 4 : 6;
    preamble->port[0] = (uint8_t)(place->port >> 8);
    preamble->port[1] = (uint8_t)place->port;
    if (is_v4)
        memcpy(preamble->address, place->v4, sizeof place->v4);
    else
        memcpy(preamble->address, (const uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr), 16);
    memcpy(preamble->token, view->token, sizeof preamble->token);
}

void ns_route_plan(const struct ns_map *map, const void *name, uint32_t length, int unspecified, uint32_t protocol,
                   struct ns_route *route)
{
    struct ns_sockaddr place;
    struct ns_view view;

    memset(route, 0, sizeof *route);
    ns_sockaddr_read(name, length, unspecified, &place);
    if (map == NULL || place.where != NS_ELSEWHERE || !is_internet(&place))
        return;
    if (protocol != NS_TCP && (protocol != NS_UDP || place.port != NS_DNS_PORT))
        return;
    if (ns_map_look(map, 0, &view) != 0) {
        route->kind = NS_ROUTE_REFUSE;
    } else if (place.port == NS_DNS_PORT && view.resolver != 0) {
        route->kind = NS_ROUTE_RESOLVER;
        route->length = ns_sockaddr_localhost(place.family, view.resolver, route->name);
    } else if (protocol == NS_TCP && view.egress != 0) {
        route->kind = NS_ROUTE_EGRESS;
        route->length = ns_sockaddr_localhost(place.family, view.egress, route->name);
        write_preamble(name, &place, &view, &route->preamble);
    }
}

int ns_route_is_door(const struct ns_map *map, const void *name, uint32_t length)
{
    struct ns_sockaddr place;
    struct ns_view view;

    ns_sockaddr_read(name, length, AF_UNSPEC, &place);
    if (place.where != NS_LOOPBACK || place.port == 0 || ns_map_look(map, 0, &view) != 0)
        return 0;
    return place.port == view.egress || place.port == view.resolver;
}
