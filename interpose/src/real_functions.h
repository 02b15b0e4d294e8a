/* The functions behind the hooks. On Linux a hook has the function's own name, so the next library's function is looked
 * up. On macOS an interposing library's own calls are not interposed, so the plain names are the real ones. */
#ifndef NETSANDBOX_REAL_FUNCTIONS_H
#define NETSANDBOX_REAL_FUNCTIONS_H

#include "egress.h"

#include <netdb.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#ifdef __APPLE__

#define REAL(name) name
static inline void ns_real_start(void) {}

#else

/* Every hooked function: result, name, parameters. */
#define NS_REAL_CALLS(X)                                                                                               \
    X(int, bind, (int, const struct sockaddr *, socklen_t))                                                            \
    X(int, listen, (int, int))                                                                                         \
    X(int, connect, (int, const struct sockaddr *, socklen_t))                                                         \
    X(int, accept, (int, struct sockaddr *, socklen_t *))                                                              \
    X(int, accept4, (int, struct sockaddr *, socklen_t *, int))                                                        \
    X(int, getsockname, (int, struct sockaddr *, socklen_t *))                                                         \
    X(int, getpeername, (int, struct sockaddr *, socklen_t *))                                                         \
    X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))                           \
    X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                                             \
    X(int, sendmmsg, (int, struct mmsghdr *, unsigned int, int))                                                       \
    X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))                                   \
    X(ssize_t, __recvfrom_chk, (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))                     \
    X(ssize_t, recvmsg, (int, struct msghdr *, int))                                                                   \
    X(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *))                                    \
    X(int, execve, (const char *, char *const[], char *const[]))                                                       \
    X(int, execvpe, (const char *, char *const[], char *const[]))                                                      \
    X(int, fexecve, (int, char *const[], char *const[]))                                                               \
    X(int, execveat, (int, const char *, char *const[], char *const[], int))                                           \
    X(int, posix_spawn, (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,         \
                         char *const[], char *const[]))                                                                \
    X(int, posix_spawnp, (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,        \
                          char *const[], char *const[]))

#ifdef NS_EGRESS
#define NS_REAL_LOOKUPS(X)                                                                                             \
    X(int, getaddrinfo, (const char *, const char *, const struct addrinfo *, struct addrinfo **))                     \
    X(struct hostent *, gethostbyname2, (const char *, int))
#else
#define NS_REAL_LOOKUPS(X)
#endif

struct ns_real {
#define FIELD(result, name, parameters) result(*name) parameters;
    NS_REAL_CALLS(FIELD)
    NS_REAL_LOOKUPS(FIELD)
#undef FIELD
};

const struct ns_real *ns_real(void);
void ns_real_start(void);
#define REAL(name) (ns_real()->name)

#endif
#endif
