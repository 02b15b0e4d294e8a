#include "local_calls.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

#include "caller.h"
#include "refused_ports.h"
#include "reports.h"
#include "trap_pool.h"
#include "traps.h"

static int is_loopback(const union address *address)
{
    const struct sockaddr_in *inet = (const struct sockaddr_in *)&address->any;
    const struct sockaddr_in6 *inet6 = (const struct sockaddr_in6 *)&address->any;
    uint32_t host = ntohl(inet->sin_addr.s_addr);

    if (address->any.sa_family == AF_INET)
        return host >> 24 == 127 || host == INADDR_ANY;
    return IN6_IS_ADDR_LOOPBACK(&inet6->sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&inet6->sin6_addr)
        || (IN6_IS_ADDR_V4MAPPED(&inet6->sin6_addr) && inet6->sin6_addr.s6_addr[12] == 127);
}

/* A connect that does not wait says EINPROGRESS although the reset has arrived; poll leaves the error to the caller. */
static int was_refused(const struct taken *taken, int error)
{
    struct pollfd watched = { .fd = taken->copy, .events = POLLOUT };

    return error == ECONNREFUSED || (error == EINPROGRESS && poll(&watched, 1, 0) > 0 && watched.revents & POLLERR);
}

static void tell(const struct taken *taken, char kind, uint16_t port, uint32_t times)
{
    char exe[PATH_MAX];
    char letter = 'L';
    struct local_call call = { .pid = (int32_t)taken->call->pid, .times = times, .port = port, .kind = (uint8_t)kind };
    struct iovec parts[3] = { { &letter, 1 }, { &call, sizeof call }, { exe, 1 } };

    parts[2].iov_len = caller_link((pid_t)taken->call->pid, "exe", exe, sizeof exe) + 1;
    if (is_waiting(taken->call)) /* else what was read may be of another process */
        to_supervisor(parts, 3, MSG_DONTWAIT);
}

void report_local(const struct taken *taken, int error)
{
    uint16_t port;
    uint32_t times;
    int is_refused;

    if (taken->length < sizeof(struct sockaddr_in) || taken->address.any.sa_family != taken->family)
        return;
    if (taken->family == AF_INET6 && taken->length < sizeof(struct sockaddr_in6))
        return;
    memcpy(&port, taken->address.bytes + 2, sizeof port);
    port = ntohs(port);
    if (taken->binds) {
        if (error == EADDRINUSE)
            tell(taken, LOCAL_TAKEN, port, 1);
        return;
    }
    if (!is_loopback(&taken->address))
        return;
    is_refused = was_refused(taken, error);
    if (!is_refused && error != 0 && error != EINPROGRESS)
        return;
    times = refused_times(port, is_refused);
    if (times > 0)
        tell(taken, is_refused ? LOCAL_REFUSED : LOCAL_CONNECTED, port, times);
}
