/* The broker: makes the connect and bind calls of the session on copies, so that its Unix sockets are its own.
 *
 * A Unix path is only a key, never given to connect(2) or bind(2) as it is. A path that the session binds gets a
 * stand-in: a socket file at which nobody listens. The socket itself is bound in a tree of its own, under the same bytes,
 * by a process that has nothing else as its root (the binder), and its name there is removed at once. So a program of the
 * host finds nobody at the stand-in, and a connect from inside is led by the stand-in's inode to the session's own socket.
 * Any other socket file belongs to the host; the supervisor decides about it. Abstract names belong to the session's
 * network, and so do internet sockets; these calls are made with the same bytes.
 *
 * The kernel would look up the descriptor and read the address again after a check, so no connect and no bind is ever
 * continued.
 *
 * here -> supervisor: Q <struct question> exe NUL path NUL
 * supervisor -> here: struct reply */
#ifndef NETSANDBOX_SOCKETS_H
#define NETSANDBOX_SOCKETS_H

#include <linux/seccomp.h>
#include <stdint.h>

enum question_kind {
    QUESTION_SOCKET = 'u',    /* a socket file that is not of this session: 0 to connect */
    QUESTION_HIDDEN = 'h',    /* one of the host that the session does not see */
    QUESTION_NETWORK = 'n',   /* a socket of another network, or of a family that no session has */
    QUESTION_MALFORMED = 'm', /* the address cannot be read */
    QUESTION_INTERNAL = 'i',  /* the caller cannot be looked into */
};

struct question {
    uint64_t id;
    uint64_t device;
    uint64_t inode;
    int32_t pid;
    int32_t error;
    uint8_t kind;
    uint8_t type;  /* of the socket: SOCK_STREAM … */
    uint8_t binds; /* bind(2), not connect(2) */
    uint8_t unused[5];
};

struct reply {
    uint64_t id;
    int32_t error; /* 0: go on */
    int32_t unused;
};

/* Answers the call, which is a connect, or a bind. *guarded*: the supervisor decides about ports. Returns 0 if the call
 * is for the supervisor. */
int serve_socket(const struct seccomp_notif *call, int guarded);

/* Answers a listen of a Unix socket. If it is not *guarded*, the supervisor only wants to know of listeners, so nothing is
 * decided and the call goes on: the server's clients see its pid. Returns 0 if the call is for the supervisor. */
int serve_listen(const struct seccomp_notif *call, int guarded);

/* Called once, before the first call. */
void sockets_begin(void);

#endif
