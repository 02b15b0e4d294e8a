/* TCP sockets of the session.
 *
 * Each is made by us and pinned at its birth: bound to 127.0.0.1, without a port yet. From then on the kernel refuses every
 * destination that is not on this machine, by any call of any process. (With route_localnet it does not; then a session
 * starts only if Landlock has rules for TCP, setup.c.) The session's servers see that address as their peer's; some, such
 * as Redis, trust no other. Landlock refuses connect and bind of the command altogether; we make them on our copy. */
#include "calls.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "own_ports.h"
#include "questions.h"
#include "rendezvous.h"
#include "setup.h"
#include "trap_pool.h"
#include "waiting_connect.h"

#define DNS_PORT 53     /* portmap/netsandbox_portmap/__init__.py */
#define MIXED_PORT 1008 /* the same */

/* Binds a socket to 127.0.0.1, without a port yet: Redis and PostgreSQL know localhost by this address alone. */
static int pin(int socket, int family)
{
    const int on = 1;
    const int off = 0;
    union address address;
    struct place localhost = place_of_ipv4(INADDR_LOOPBACK, 0);
    socklen_t length = place_write(family, &localhost, &address);

    if (family == AF_INET6 && setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
        return errno;
    if (setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) < 0
        || bind(socket, &address.any, length) < 0)
        return errno;
    return 0;
}

int stream_socket(const struct seccomp_notif *call, int family, int flags)
{
    int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), 0);
    struct entry *entry;
    int error;

    if (made < 0)
        return errno;
    error = pin(made, family);
    if (error) {
        close(made);
        return error;
    }
    entry = entry_add(made, -1, KIND_STREAM, family, SOCK_STREAM, (pid_t)call->pid);
    if (entry == NULL) {
        close(made);
        return ENOMEM;
    }
    error = answer_with(call, made, flags & SOCK_CLOEXEC);
    if (error)
        entry_remove(entry);
    else
        entry_done(entry);
    return 0; /* the caller is answered, or gone */
}

static int host_door(uint16_t port)
{
    for (int number = 0; number < setup.host_port_count; number++)
        if (setup.host_ports[number] == port)
            return DOOR_HOST + number;
    return -1;
}

static int is_own_device(const struct place *place)
{
    struct place device = place_of_ipv4(setup.device, place->port);
    struct place device6 = place_of_ipv4(setup.device6, place->port);

    return same_place(place, &device) || same_place(place, &device6);
}

/* The door that leads to *wanted*, or -1 if it is the session's own localhost. */
static int door_for(const struct place *wanted)
{
    int is_own = is_localhost(wanted) || is_unspecified(wanted) || is_own_device(wanted);

    if (is_own && wanted->port == MIXED_PORT)
        return DOOR_MIXED;
    if (wanted->port == DNS_PORT) /* a name server of the host may be on the loopback too, as systemd-resolved */
        return DOOR_DNS;
    if (is_own)
        return host_door(wanted->port);
    return is_loopback(wanted) ? -1 : DOOR_TRANSPARENT;
}

static int connect_own(const struct seccomp_notif *call, struct entry *entry, const struct place *wanted)
{
    struct place actual;
    union address address;
    socklen_t length;
    int error = ECONNREFUSED;

    if (is_own_device(wanted) || is_localhost(wanted) || is_unspecified(wanted)) {
        int is_ipv6 = !is_ipv4(wanted);

        if (find_own(is_ipv6, wanted->port, &actual)) {
            length = place_write(entry->family, &actual, &address);
            error = connect_waiting(call, entry->copy, &address.any, length);
        }
    }
    tell_local(call, 0, wanted, error);
    return error;
}

int stream_connect(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    const int off = 0;
    struct place wanted;
    int door;
    int error;

    if (entry->copy < 0)
        return entry->is_connected ? EISCONN : EINVAL;
    if (length >= sizeof(sa_family_t) && address->any.sa_family == AF_UNSPEC)
        return connect(entry->copy, &address->any, sizeof(sa_family_t)) < 0 ? errno : 0;
    error = place_read(entry->family, address, length, &wanted);
    if (error)
        return error;
    if (entry->family == AF_INET6)
        setsockopt(entry->copy, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); /* a program may have set it */
    door = door_for(&wanted);
    if (door >= 0)
        error = join_door(call, entry->copy, entry->family, door, &wanted);
    else
        error = connect_own(call, entry, &wanted);
    if (error == 0 || error == EINPROGRESS) {
        entry->is_connected = 1;
        entry->has_peer = 1;
        entry->peer = wanted;
        entry_drop_copy(entry);
    }
    return error;
}

static int is_only_ipv6(const struct entry *entry)
{
    int only = 0;
    socklen_t size = sizeof only;

    return entry->family == AF_INET6 && getsockopt(entry->copy, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) == 0 && only;
}

static int bind_to(const struct seccomp_notif *call, struct entry *entry, const struct place *asked)
{
    struct question question = { .kind = QUESTION_BIND, .family = entry->family, .type = SOCK_STREAM, .binds = 1 };
    struct verdict verdict;
    int is_ipv6 = entry->family == AF_INET6 && !is_ipv4(asked);
    int is_both = is_ipv6 && is_unspecified(asked) && !is_only_ipv6(entry);
    int error;

    if (door_for(asked) >= 0 && door_for(asked) != DOOR_TRANSPARENT) { /* it leads out of the session */
        tell_local(call, 1, asked, EADDRINUSE);
        return EADDRINUSE;
    }
    question.place = *asked;
    error = ask(call, &question, NULL, &verdict);
    if (error)
        return error;
    error = bind_own(entry->copy, entry->family, is_both || !is_ipv6, asked->port, &verdict.actual);
    if (error == EADDRINUSE && is_ipv6 && !is_both) { /* the port of IPv4 has a server already */
        struct place other = place_of_ipv4(setup.device6, verdict.actual.port);

        error = bind_own(entry->copy, entry->family, 0, asked->port, &other);
    }
    if (error) {
        tell_local(call, 1, asked, error);
        return error;
    }
    entry->local = *asked;
    if (entry->local.port == 0)
        entry->local.port = verdict.actual.port;
    entry->has_local = 1;
    return 0;
}

int stream_bind(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    struct place asked;
    int error = place_read(entry->family, address, length, &asked);

    if (error)
        return error == EAFNOSUPPORT && entry->family == AF_INET6 ? EINVAL : error;
    if (entry->copy < 0 || entry->has_local)
        return EINVAL;
    return bind_to(call, entry, &asked);
}

int stream_listen(const struct seccomp_notif *call, struct entry *entry)
{
    union address address;
    socklen_t length = sizeof address;
    struct place actual;
    int error = 0;

    if (entry->is_listening || entry->copy < 0)
        return entry->is_listening ? 0 : EINVAL;
    if (!entry->has_local) {
        struct place any = { .port = 0 };

        if (entry->family == AF_INET)
            any = place_of_ipv4(0, 0);
        error = bind_to(call, entry, &any);
    }
    if (error == 0 && getsockname(entry->copy, &address.any, &length) < 0)
        error = errno;
    if (error == 0)
        error = place_read(entry->family, &address, length, &actual);
    if (error == 0)
        error = listen_own(entry->copy, &actual, (int)call->data.args[1]);
    if (error)
        return error;
    entry->is_listening = 1;
    entry_drop_copy(entry);
    tell_listening(call, &actual);
    return 0;
}
