/* The port map of the session that this process belongs to. */
#ifndef NETSANDBOX_SESSION_H
#define NETSANDBOX_SESSION_H

#include "map.h"

/* NULL if no map can be read; a caller that needs one refuses (INV-1). Keeps errno. */
const struct ns_map *ns_session_map(void);

#endif
