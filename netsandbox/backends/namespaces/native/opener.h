/* Opens the files of the host that the user approved, for a session that asks about files (asked_files.py).
 *
 * The process is in the session's user namespace, where it may mount, and in its own copy of the host's mounts. Each file
 * is reached through a detached mount of it alone. So a descriptor for reading stays one: /proc/self/fd cannot open it
 * for writing, since its mount is read-only. And `..` of an approved folder leads nowhere.
 *
 * Descriptors: 3 a SOCK_SEQPACKET socket to the supervisor, 4 the session's user namespace, 5 its mounts.
 * supervisor -> here: struct open_request path NUL     the path is absolute and has no links
 * here -> supervisor: i32 errno [descriptor]           in the order of the requests */
#ifndef NETSANDBOX_OPENER_H
#define NETSANDBOX_OPENER_H

#include <stdint.h>
#include <stdnoreturn.h>

struct open_request {
    uint8_t does;   /* 'o' open; 'n' make a file that does not exist, and open it; 'x' show it in the session, read-only */
    uint8_t writes; /* 0: through a read-only mount */
    uint16_t unused;
    uint32_t flags; /* of open(2) */
    uint32_t mode;
};

noreturn void serve_opens(void);

#endif
