#include "own_ports.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket_table.h"

#define MAX_GUARDS 4096

struct guard {
    struct place place;
    uint16_t asked; /* the port as the program knows it */
    int socket;
};

static struct guard guards[MAX_GUARDS];
static size_t guard_count;
static struct place own[2][65536]; /* IPv4, IPv6; port 0 in the place: none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int set_reuse(int socket, int reuses)
{
    return setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &reuses, sizeof reuses);
}

static int bind_place(int socket, int family, const struct place *place)
{
    union address address;
    socklen_t length = place_write(family, place, &address);

    return bind(socket, &address.any, length) < 0 ? errno : 0;
}

static struct guard *guard_of(const struct place *place)
{
    for (size_t number = 0; number < guard_count; number++)
        if (same_place(&guards[number].place, place))
            return &guards[number];
    return NULL;
}

static void forget(int is_ipv6, const struct guard *guard)
{
    if (same_place(&own[is_ipv6][guard->asked], &guard->place))
        memset(&own[is_ipv6][guard->asked], 0, sizeof **own);
}

/* Drops the guards of ports that no socket of the session has any more: nothing leads there then. */
static void drop_unused(void)
{
    sweep_sockets(1);
    for (size_t number = 0; number < guard_count;) {
        struct guard *guard = &guards[number];

        if (is_stream_port(guard->asked)) {
            number++;
            continue;
        }
        forget(0, guard);
        forget(1, guard);
        close(guard->socket);
        *guard = guards[--guard_count];
    }
}

/* A guard that lets the session's own sockets be bound beside it for now. NULL with errno. */
static struct guard *open_guard(const struct place *place)
{
    struct guard *found = guard_of(place);
    int error;

    if (found != NULL) {
        set_reuse(found->socket, 1);
        return found;
    }
    if (guard_count == MAX_GUARDS)
        drop_unused();
    if (guard_count == MAX_GUARDS) {
        errno = ENOBUFS;
        return NULL;
    }
    found = &guards[guard_count];
    found->place = *place;
    found->asked = place->port;
    found->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (found->socket < 0)
        return NULL;
    set_reuse(found->socket, 1);
    error = bind_place(found->socket, AF_INET, place);
    if (error) {
        close(found->socket);
        errno = error;
        return NULL;
    }
    guard_count++;
    return found;
}

static int bind_beside(int copy, int family, const struct place *actual)
{
    struct guard *guard = open_guard(actual);
    int error;

    if (guard == NULL)
        return errno;
    error = bind_place(copy, family, actual);
    set_reuse(guard->socket, 0);
    return error;
}

/* The kernel chooses the port. */
static int bind_any(int copy, int family, struct place *actual)
{
    union address address;
    socklen_t length = sizeof address;
    struct guard *guard;
    int error = bind_place(copy, family, actual);

    if (error)
        return error;
    if (getsockname(copy, &address.any, &length) < 0)
        return errno;
    place_read(family, &address, length, actual);
    guard = open_guard(actual);
    if (guard == NULL)
        return errno;
    set_reuse(guard->socket, 0);
    return 0;
}

int bind_own(int copy, int family, int is_both, uint16_t port, struct place *actual)
{
    const int off = 0;
    int error;

    if (family == AF_INET6) /* the device is an IPv4 address */
        setsockopt(copy, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    setsockopt(copy, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &off, sizeof off);
    pthread_mutex_lock(&lock);
    set_reuse(copy, 1); /* and it stays so: an earlier session with the same device may have left connections */
    error = actual->port == 0 ? bind_any(copy, family, actual) : bind_beside(copy, family, actual);
    if (error == EADDRINUSE && actual->port != 0) {
        sweep_sockets(1); /* a program may have closed a socket that we still have a copy of */
        error = bind_beside(copy, family, actual);
    }
    if (error == 0) {
        uint16_t asked = port ? port : actual->port;

        guard_of(actual)->asked = asked;
        if (family == AF_INET || is_both)
            own[0][asked] = *actual;
        if (family == AF_INET6)
            own[1][asked] = *actual;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* The kernel looks for conflicts once more when a socket begins to listen. */
int listen_own(int copy, const struct place *actual, int backlog)
{
    struct guard *guard;
    int error;

    pthread_mutex_lock(&lock);
    guard = guard_of(actual);
    if (guard != NULL)
        set_reuse(guard->socket, 1);
    error = guard == NULL ? EADDRNOTAVAIL : listen(copy, backlog) < 0 ? errno : 0;
    if (guard != NULL)
        set_reuse(guard->socket, 0);
    pthread_mutex_unlock(&lock);
    return error;
}

int find_own(int is_ipv6, uint16_t port, struct place *into)
{
    pthread_mutex_lock(&lock);
    *into = own[is_ipv6 != 0][port];
    pthread_mutex_unlock(&lock);
    return into->port != 0;
}
