/* The port map in memory: opened, checked and read. Every function except ns_map_open is pure. None allocates, none
 * changes errno on success, and all may run in a signal handler. */
#ifndef NETSANDBOX_MAP_H
#define NETSANDBOX_MAP_H

#include "portmap.h"

/* cdef */
/* What one consistent read of the map returns for one port. */
struct ns_view {
    uint32_t strategy;
    uint8_t device[4];
    uint16_t base;
    uint16_t count;
    uint16_t window;        /* the window port that stands for the port, or 0 */
    uint16_t requested;         /* the port that a program requested, if the port is a window port, or 0 */
    uint16_t passing;       /* 1: the port is never rewritten */
    uint16_t door;
    uint16_t egress;
    uint16_t resolver;
    uint8_t token[NS_TOKEN_BYTES];
};

/* The map at a path, for reading, or NULL: a missing, foreign, short or irregular file is no map. */
const struct ns_map *ns_map_open(const char *path);
void ns_map_close(const struct ns_map *map);

/* 0 and the view, or -1: no map, an invalid one, or a writer that does not finish. */
int ns_map_look(const struct ns_map *map, uint16_t port, struct ns_view *view);

/* For the only writer: between the two calls readers wait, and they see the changes as a whole. */
void ns_map_begin(struct ns_map *map);
void ns_map_end(struct ns_map *map);
/* end of cdef */

#endif
