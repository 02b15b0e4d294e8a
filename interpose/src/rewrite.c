/* The rules of the strategies (rewrite.h). An address that is neither loopback nor wildcard is never changed: what may
 * leave the session is not decided here (INV-7). Without a valid map every local address is refused (INV-1). */
#include "rewrite.h"

#include "sockaddr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

static void refuse(struct ns_plan *plan, int error)
{
    plan->verdict = NS_REFUSE;
    plan->error = error;
}

static void change(struct ns_plan *plan, const void *name, uint32_t length, int family, uint16_t port)
{
    uint32_t whole = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    plan->verdict = NS_CHANGED;
    plan->length = length < whole ? length : whole;
    memcpy(plan->name, name, plan->length);
    ns_sockaddr_set_port(plan->name, port);
#ifdef __APPLE__
    plan->name[offsetof(struct sockaddr, sa_len)] = (uint8_t)plan->length;
#endif
}

static int is_localhost(const struct ns_sockaddr *place)
{
    return place->where == NS_WILDCARD || memcmp(place->v4, NS_LOCALHOST, 4) == 0;
}

static void to_device(struct ns_plan *plan, const struct ns_sockaddr *place, const struct ns_view *view)
{
    ns_sockaddr_set_v4(plan->name, place->family, view->device);
    plan->dual = place->family == AF_INET6;
}

/* Strategy fail: any loopback address, or only the session's own. */
static int is_allowed(const struct ns_sockaddr *place, const struct ns_view *view)
{
    if (place->port < view->base || place->port - view->base >= view->count)
        return 0;
    return ns_sockaddr_where(view->device) == NS_WILDCARD || memcmp(place->v4, view->device, 4) == 0;
}

/* 1 if the name is local and the map could be read; 0 if the plan is already complete. */
static int begin(const struct ns_map *map, struct ns_sockaddr *place, struct ns_view *view, struct ns_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    if (place->where == NS_ELSEWHERE)
        return 0;
    if (ns_map_look(map, place->port, view) != 0) {
        refuse(plan, EACCES);
        return 0;
    }
    plan->port = place->port;
    memcpy(plan->address, place->v4, 4);
    plan->spelling = memcmp(place->v4, view->device, 4) == 0 && place->where == NS_LOOPBACK ? NS_SPELT_DEVICE
                                                                                         : place->spelling;
    return !view->passing;
}

void ns_plan_bind(const struct ns_map *map, const void *name, uint32_t length, struct ns_plan *plan)
{
    struct ns_sockaddr place;
    struct ns_view view;

    ns_sockaddr_read(name, length, AF_INET, &place);
    if (!begin(map, &place, &view, plan))
        return;
    if (view.strategy == NS_STRATEGY_PORT && view.window != 0)
        change(plan, name, length, place.family, view.window);
    else if (view.strategy != NS_STRATEGY_FAIL || !is_allowed(&place, &view))
        plan->verdict = NS_REQUEST;
    plan->dual = view.strategy == NS_STRATEGY_DEVICE && is_localhost(&place) && place.family == AF_INET6;
}

void ns_plan_answer(const struct ns_map *map, const void *name, uint32_t length, uint16_t port, struct ns_plan *plan)
{
    struct ns_sockaddr place;
    struct ns_view view;

    ns_sockaddr_read(name, length, AF_INET, &place);
    if (!begin(map, &place, &view, plan))
        return;
    if (view.strategy == NS_STRATEGY_DEVICE && place.port != 0)
        port = place.port;
    if (port == 0 && view.strategy != NS_STRATEGY_DEVICE) {
        refuse(plan, EACCES);
        return;
    }
    change(plan, name, length, place.family, port);
    if (view.strategy == NS_STRATEGY_DEVICE && is_localhost(&place))
        to_device(plan, &place, &view);
}

/* A connection to a wildcard is a connection to loopback, and shows that. */
static uint32_t reached(uint32_t spelling)
{
    if (spelling == NS_SPELT_ANY6)
        return NS_SPELT_ONE6;
    return spelling == NS_SPELT_ANY4 ? NS_SPELT_DEFAULT : spelling;
}

static void plan_reach(const struct ns_map *map, const void *name, uint32_t length, int unspecified,
                       struct ns_plan *plan)
{
    struct ns_sockaddr place;
    struct ns_view view;

    ns_sockaddr_read(name, length, unspecified, &place);
    if (!begin(map, &place, &view, plan))
        return;
    plan->spelling = reached(plan->spelling);
    if (view.strategy == NS_STRATEGY_PORT && view.window != 0)
        change(plan, name, length, place.family, view.window);
    if (view.strategy == NS_STRATEGY_DEVICE && is_localhost(&place)) {
        change(plan, name, length, place.family, place.port);
        to_device(plan, &place, &view);
    }
}

void ns_plan_connect(const struct ns_map *map, const void *name, uint32_t length, struct ns_plan *plan)
{
    plan_reach(map, name, length, AF_UNSPEC, plan);
}

void ns_plan_send(const struct ns_map *map, const void *name, uint32_t length, struct ns_plan *plan)
{
    plan_reach(map, name, length, AF_INET, plan);
}

static void restore_device(void *name, const struct ns_sockaddr *place, uint32_t spelling)
{
    uint8_t *address6 = (uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr);

    if (place->family == AF_INET)
        ns_sockaddr_set_v4(name, AF_INET, spelling == NS_SPELT_ANY4 ? NS_UNSPECIFIED : NS_LOCALHOST);
    else if (spelling == NS_SPELT_ONE6)
        memcpy(address6, NS_LOOPBACK6, 16);
    else if (spelling == NS_SPELT_ANY6)
        memcpy(address6, NS_UNSPECIFIED, 16);
    else
        ns_sockaddr_set_v4(name, AF_INET6, NS_LOCALHOST);
}

int ns_restore(const struct ns_map *map, uint32_t spelling, void *name, uint32_t length)
{
    struct ns_sockaddr place;
    struct ns_view view;

    ns_sockaddr_read(name, length, AF_UNSPEC, &place);
    if (place.where == NS_ELSEWHERE || ns_map_look(map, place.port, &view) != 0)
        return 0;
    if (view.strategy == NS_STRATEGY_PORT && view.requested != 0 && view.requested != place.port && !view.passing) {
        ns_sockaddr_set_port(name, view.requested);
        return 1;
    }
    if (view.strategy != NS_STRATEGY_DEVICE || spelling == NS_SPELT_DEVICE || memcmp(place.v4, view.device, 4) != 0)
        return 0;
    restore_device(name, &place, spelling);
    return 1;
}

int ns_is_local(const void *name, uint32_t length)
{
    struct ns_sockaddr place;

    ns_sockaddr_read(name, length, AF_UNSPEC, &place);
    return place.where != NS_ELSEWHERE;
}
