/* The rules of the strategies (rewrite.h). An address that is neither loopback nor wildcard is never touched: what may
 * leave the session is not decided here (INV-7). Without a sound map everything local is refused (INV-1). */
#include "rewrite.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define SHORTEST_IN6 24  /* RFC 2133's, without the scope; Linux still takes it */
#define LONGEST_NAME 128 /* sizeof(struct sockaddr_storage): the kernel refuses longer ones */

enum where { ELSEWHERE, LOOPBACK, WILDCARD };

struct place {
    enum where where;
    int family;
    uint16_t port;
    uint8_t v4[4];      /* as IPv4: ::1 is 127.0.0.1 */
    uint32_t spelling;
};

static const uint8_t LOCALHOST[4] = {127, 0, 0, 1};
static const uint8_t NOWHERE[16];
static const uint8_t ONE6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
static const uint8_t MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static enum where where_is(const uint8_t *v4)
{
    if (v4[0] == 127)
        return LOOPBACK;
    return memcmp(v4, NOWHERE, 4) == 0 ? WILDCARD : ELSEWHERE;
}

static void read_in(const uint8_t *bytes, struct place *place)
{
    memcpy(place->v4, bytes + offsetof(struct sockaddr_in, sin_addr), 4);
    place->where = where_is(place->v4);
    place->spelling = place->where == WILDCARD ? NS_SPELT_ANY4 : NS_SPELT_DEFAULT;
}

static void read_in6(const uint8_t *bytes, struct place *place)
{
    const uint8_t *address = bytes + offsetof(struct sockaddr_in6, sin6_addr);

    if (memcmp(address, ONE6, 16) == 0) {
        memcpy(place->v4, LOCALHOST, 4);
        place->where = LOOPBACK;
        place->spelling = NS_SPELT_ONE6;
    } else if (memcmp(address, NOWHERE, 16) == 0) {
        place->where = WILDCARD;
        place->spelling = NS_SPELT_ANY6;
    } else if (memcmp(address, MAPPED, 12) == 0) {
        memcpy(place->v4, address + 12, 4);
        place->where = where_is(place->v4);
    }
}

/* Anything that the kernel would not take for an internet address is elsewhere. */
static void read_place(const void *name, uint32_t length, int unspecified, struct place *place)
{
    struct sockaddr head;
    uint16_t port;

    memset(place, 0, sizeof *place);
    if (name == NULL || length < sizeof(struct sockaddr_in) || length > LONGEST_NAME)
        return;
    memcpy(&head, name, sizeof head);
    place->family = head.sa_family == AF_UNSPEC ? unspecified : head.sa_family;
    memcpy(&port, (const uint8_t *)name + offsetof(struct sockaddr_in, sin_port), sizeof port);
    place->port = ntohs(port);
    if (place->family == AF_INET)
        read_in(name, place);
    else if (place->family == AF_INET6 && length >= SHORTEST_IN6)
        read_in6(name, place);
}

static void write_port(void *name, uint16_t port)
{
    port = htons(port);
    memcpy((uint8_t *)name + offsetof(struct sockaddr_in, sin_port), &port, sizeof port);
}

static void write_v4(void *name, int family, const uint8_t *v4)
{
    if (family == AF_INET) {
        memcpy((uint8_t *)name + offsetof(struct sockaddr_in, sin_addr), v4, 4);
        return;
    }
    memcpy((uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr), MAPPED, 12);
    memcpy((uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr) + 12, v4, 4);
}

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
    write_port(plan->name, port);
#ifdef __APPLE__
    plan->name[offsetof(struct sockaddr, sa_len)] = (uint8_t)plan->length;
#endif
}

static int is_localhost(const struct place *place)
{
    return place->where == WILDCARD || memcmp(place->v4, LOCALHOST, 4) == 0;
}

static void to_device(struct ns_plan *plan, const struct place *place, const struct ns_view *view)
{
    write_v4(plan->name, place->family, view->device);
    plan->dual = place->family == AF_INET6;
}

/* Strategy fail: on any loopback address, or only on the one that the session has. */
static int is_allowed(const struct place *place, const struct ns_view *view)
{
    if (place->port < view->base || place->port - view->base >= view->count)
        return 0;
    return where_is(view->device) == WILDCARD || memcmp(place->v4, view->device, 4) == 0;
}

/* 1 if the name is local and the map could be looked at; 0 if the plan is already made. */
static int begin(const struct ns_map *map, struct place *place, struct ns_view *view, struct ns_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    if (place->where == ELSEWHERE)
        return 0;
    if (ns_map_look(map, place->port, view) != 0) {
        refuse(plan, EACCES);
        return 0;
    }
    plan->port = place->port;
    memcpy(plan->address, place->v4, 4);
    plan->spelling = memcmp(place->v4, view->device, 4) == 0 && place->where == LOOPBACK ? NS_SPELT_DEVICE
                                                                                         : place->spelling;
    return !view->passing;
}

void ns_plan_bind(const struct ns_map *map, const void *name, uint32_t length, struct ns_plan *plan)
{
    struct place place;
    struct ns_view view;

    read_place(name, length, AF_INET, &place);
    if (!begin(map, &place, &view, plan))
        return;
    if (view.strategy == NS_STRATEGY_PORT && view.window != 0)
        change(plan, name, length, place.family, view.window);
    else if (view.strategy != NS_STRATEGY_FAIL || !is_allowed(&place, &view))
        plan->verdict = NS_ASK;
    plan->dual = view.strategy == NS_STRATEGY_DEVICE && is_localhost(&place) && place.family == AF_INET6;
}

void ns_plan_answer(const struct ns_map *map, const void *name, uint32_t length, uint16_t port, struct ns_plan *plan)
{
    struct place place;
    struct ns_view view;

    read_place(name, length, AF_INET, &place);
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

/* Who connects to a wildcard is connected to loopback, and sees that. */
static uint32_t reached(uint32_t spelling)
{
    if (spelling == NS_SPELT_ANY6)
        return NS_SPELT_ONE6;
    return spelling == NS_SPELT_ANY4 ? NS_SPELT_DEFAULT : spelling;
}

static void plan_reach(const struct ns_map *map, const void *name, uint32_t length, int unspecified,
                       struct ns_plan *plan)
{
    struct place place;
    struct ns_view view;

    read_place(name, length, unspecified, &place);
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

static void restore_device(void *name, const struct place *place, uint32_t spelling)
{
    uint8_t *address6 = (uint8_t *)name + offsetof(struct sockaddr_in6, sin6_addr);

    if (place->family == AF_INET)
        write_v4(name, AF_INET, spelling == NS_SPELT_ANY4 ? NOWHERE : LOCALHOST);
    else if (spelling == NS_SPELT_ONE6)
        memcpy(address6, ONE6, 16);
    else if (spelling == NS_SPELT_ANY6)
        memcpy(address6, NOWHERE, 16);
    else
        write_v4(name, AF_INET6, LOCALHOST);
}

int ns_restore(const struct ns_map *map, uint32_t spelling, void *name, uint32_t length)
{
    struct place place;
    struct ns_view view;

    read_place(name, length, AF_UNSPEC, &place);
    if (place.where == ELSEWHERE || ns_map_look(map, place.port, &view) != 0)
        return 0;
    if (view.strategy == NS_STRATEGY_PORT && view.asked != 0 && view.asked != place.port && !view.passing) {
        write_port(name, view.asked);
        return 1;
    }
    if (view.strategy != NS_STRATEGY_DEVICE || spelling == NS_SPELT_DEVICE || memcmp(place.v4, view.device, 4) != 0)
        return 0;
    restore_device(name, &place, spelling);
    return 1;
}

int ns_is_local(const void *name, uint32_t length)
{
    struct place place;

    read_place(name, length, AF_UNSPEC, &place);
    return place.where != ELSEWHERE;
}
