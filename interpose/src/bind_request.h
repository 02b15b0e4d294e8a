/* Requests from the supervisor a bind that the port map does not have. */
#ifndef NETSANDBOX_BIND_REQUEST_H
#define NETSANDBOX_BIND_REQUEST_H

#include "rewrite.h"

/* 0 and the port to bind, or the errno for the program. Any failure is EACCES, within a second. */
int ns_bind_request(const struct ns_map *map, const struct ns_plan *plan, uint32_t protocol, uint16_t *port);

#endif
