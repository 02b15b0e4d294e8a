/* Opens the map once. Concurrent threads and signal handlers each open it; the first to store its mapping wins and the
 * others unmap theirs, so that none ever waits. */
#include "session.h"

#include "injection.h"
#include "real_functions.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct ns_map *session;

static const struct ns_map *open_session(void)
{
    const struct ns_injection *injection = ns_injection();
    const struct ns_map *first = NULL;
    const struct ns_map *mine;

    if (injection == NULL)
        return NULL;
    mine = ns_map_open(injection->map + strlen(NS_PORT_MAP "="));
    if (mine == NULL)
        return NULL;
    if (__atomic_compare_exchange_n(&session, &first, mine, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mine;
    ns_map_close(mine);
    return first;
}

const struct ns_map *ns_session_map(void)
{
    const struct ns_map *map = __atomic_load_n(&session, __ATOMIC_ACQUIRE);
    int saved;

    if (map != NULL)
        return map;
    saved = errno;
    map = open_session();
    errno = saved;
    return map;
}

__attribute__((constructor)) static void start(void)
{
    ns_real_start();
    ns_session_map();
}
