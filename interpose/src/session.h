/* The port map of the session that this process belongs to. */
#ifndef NETSANDBOX_SESSION_H
#define NETSANDBOX_SESSION_H

#include "map.h"

/* NULL: there is none that can be read; whoever needs it refuses (INV-1). Leaves errno alone. */
const struct ns_map *ns_session_map(void);

#endif
