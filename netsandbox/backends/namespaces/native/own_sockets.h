/* The sockets that the session has bound to paths, by device and inode of their stand-ins. Only the receiving thread uses
 * these functions. */
#ifndef NETSANDBOX_OWN_SOCKETS_H
#define NETSANDBOX_OWN_SOCKETS_H

#include "socket_call.h"

/* Both return 0, or an errno. */
int connect_path(const struct taken *taken);
int bind_path(struct taken *taken);

#endif
