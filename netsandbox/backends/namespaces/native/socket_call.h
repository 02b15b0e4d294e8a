/* A trapped connect(2) or bind(2): what was taken from its caller, each thing once. */
#ifndef NETSANDBOX_SOCKET_CALL_H
#define NETSANDBOX_SOCKET_CALL_H

#include <limits.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

union address {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_storage space;
    char bytes[sizeof(struct sockaddr_storage) + 1];
};

struct taken {
    const struct seccomp_notif *call;
    int binds;
    int copy; /* of the socket */
    int family;
    union address address;
    socklen_t length;
    mode_t mask;
    char path[PATH_MAX]; /* of a Unix address, as the session's root has it; empty for an abstract name */
};

/* What the session's root could not do without capabilities must not be done for it either. Returns whether we have any. */
int use_capabilities(int use);

/* The number of a socket, as /proc/net/unix has it. */
ino_t socket_number(int socket);

/* A refusal, or a question for the supervisor, which records it: 0, or an errno. Other calls go on meanwhile. */
int refusal(const struct taken *taken, char kind, int error, const struct stat *found);

/* Makes the call on the copies; with a *target*, connects to the socket file that is open there. 0, or an errno. */
int make_call(const struct taken *taken, int target);

#endif
