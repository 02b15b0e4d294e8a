/* Reads the port map. The file is bind-mounted read-only and the command cannot truncate it, so a mapped page always
 * exists. The content is checked at every read all the same, since a check takes nanoseconds. */
#include "map.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPINS 64      /* a write takes well under a microsecond */
#define NAPS_OF_1_MS 100 /* for a writer that lost the processor in the middle */

#define READ(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

const struct ns_map *ns_map_open(const char *path)
{
    struct stat about;
    struct ns_view view;
    void *memory = MAP_FAILED;
    /* O_NONBLOCK: opening a planted FIFO must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size >= (off_t)sizeof(struct ns_map))
        memory = mmap(NULL, sizeof(struct ns_map), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return NULL;
    if (ns_map_look(memory, 0, &view) == 0)
        return memory;
    munmap(memory, sizeof(struct ns_map));
    return NULL;
}

void ns_map_close(const struct ns_map *map)
{
    munmap((void *)(uintptr_t)map, sizeof *map);
}

static int is_sound(const struct ns_map *map)
{
    uint32_t strategy = READ(map->strategy);
    uint32_t base = READ(map->base);
    uint32_t count = READ(map->count);

    return READ(map->magic) == NS_MAP_MAGIC && READ(map->version) == NS_MAP_VERSION &&
           READ(map->size) == sizeof *map && strategy >= NS_STRATEGY_FAIL && strategy <= NS_STRATEGY_PORT &&
           READ(map->door) != 0 && READ(map->passing_count) <= NS_MAP_PASSING && base != 0 && count != 0 &&
           count <= NS_MAP_SLOTS && base + count - 1 <= UINT16_MAX &&
           (strategy != NS_STRATEGY_DEVICE || READ(map->device[0]) == 127);
}

static int is_window_port(const struct ns_view *view, uint16_t port)
{
    return port >= view->base && port - view->base < view->count;
}

static int is_passing(const struct ns_map *map, uint16_t port)
{
    uint16_t count = READ(map->passing_count);

    for (uint16_t place = 0; place < count && place < NS_MAP_PASSING; place++)
        if (READ(map->passing[place]) == port)
            return 1;
    return 0;
}

static int look_once(const struct ns_map *map, uint16_t port, struct ns_view *view)
{
    if (!is_sound(map))
        return -1;
    memset(view, 0, sizeof *view);
    view->strategy = READ(map->strategy);
    view->base = READ(map->base);
    view->count = READ(map->count);
    view->door = READ(map->door);
    view->egress = READ(map->egress);
    view->resolver = READ(map->resolver);
    if (view->count == 0 || view->count > NS_MAP_SLOTS) /* read again after the check */
        return -1;
    for (int byte = 0; byte < 4; byte++)
        view->device[byte] = READ(map->device[byte]);
    for (int byte = 0; byte < NS_TOKEN_BYTES; byte++)
        view->token[byte] = READ(map->token[byte]);
    if (port == 0)
        return 0;
    view->passing = (uint16_t)is_passing(map, port);
    view->window = READ(map->window[port]);
    if (is_window_port(view, port))
        view->requested = READ(map->requested[port - view->base]);
    if (view->window == 0)
        return 0;
    /* The two tables contradict each other: the write is incomplete, or the map is invalid. */
    return is_window_port(view, view->window) && READ(map->requested[view->window - view->base]) == port ? 0 : -1;
}

int ns_map_look(const struct ns_map *map, uint16_t port, struct ns_view *view)
{
    if (map == NULL)
        return -1;
    for (int attempt = 0; attempt < SPINS + NAPS_OF_1_MS; attempt++) {
        uint32_t before = __atomic_load_n(&map->sequence, __ATOMIC_ACQUIRE);
        if ((before & 1) == 0) {
            int result = look_once(map, port, view);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            if (READ(map->sequence) == before)
                return result;
        }
        if (attempt >= SPINS)
            poll(NULL, 0, 1);
    }
    return -1;
}

void ns_map_begin(struct ns_map *map)
{
    __atomic_store_n(&map->sequence, READ(map->sequence) | 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void ns_map_end(struct ns_map *map)
{
    __atomic_store_n(&map->sequence, (READ(map->sequence) | 1) + 1, __ATOMIC_RELEASE);
}
