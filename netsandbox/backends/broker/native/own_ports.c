#include "own_ports.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket_table.h"

#define MAX_GUARDS 4096
#define LOOPBACK 1           /* the index of the loopback device, in every network namespace */
#define NO_DEVICE 0x7ffffff0 /* the index of no device */
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

struct guard {
    struct place place;
    uint16_t asked; /* the port as the program knows it */
    int socket;
};

static struct guard guards[MAX_GUARDS];
static size_t guard_count;
static struct place own[2][65536]; /* IPv4, IPv6; port 0 in the place: none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int set_option(int socket, int name, int value)
{
    return setsockopt(socket, SOL_SOCKET, name, &value, sizeof value);
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

/* Binds a guard and lets it listen for a moment: the kernel then refuses it if another program listens there, and from
 * then on refuses others. It may be bound beside connections that an earlier session left, and beside nothing later. */
static int hold_place(int socket, const struct place *place)
{
    int error;

    if (set_option(socket, SO_BINDTOIFINDEX, NO_DEVICE) < 0 || set_option(socket, SO_REUSEADDR, 1) < 0)
        return errno;
    error = bind_place(socket, AF_INET, place);
    if (error)
        return error;
    if (listen(socket, 1) < 0 || set_option(socket, SO_REUSEADDR, 0) < 0 || shutdown(socket, SHUT_RD) < 0)
        return errno;
    return 0;
}

/* The guard of a place, which is made if there is none. NULL with errno. */
static struct guard *open_guard(const struct place *place)
{
    struct guard *found = guard_of(place);
    int error;

    if (found != NULL)
        return found;
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
    error = hold_place(found->socket, place);
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
    return open_guard(actual) == NULL ? errno : bind_place(copy, family, actual);
}

/* The kernel chooses the port. */
static int bind_any(int copy, int family, struct place *actual)
{
    union address address;
    socklen_t length = sizeof address;
    int error = bind_place(copy, family, actual);

    if (error)
        return error;
    if (getsockname(copy, &address.any, &length) < 0)
        return errno;
    place_read(family, &address, length, actual);
    return open_guard(actual) == NULL ? errno : 0;
}

/* A socket of the session is bound to the loopback device, so that it and the guard are not in each other's way. The
 * kernel lets that be said once. */
static int bind_to_loopback(int copy)
{
    int device = 0;
    socklen_t length = sizeof device;

    if (set_option(copy, SO_BINDTOIFINDEX, LOOPBACK) == 0)
        return 0;
    return getsockopt(copy, SOL_SOCKET, SO_BINDTOIFINDEX, &device, &length) == 0 && device == LOOPBACK ? 0 : EACCES;
}

int bind_own(int copy, int family, int is_both, uint16_t port, struct place *actual)
{
    const int off = 0;
    int error = bind_to_loopback(copy);

    if (error)
        return error;
    if (family == AF_INET6) /* the device is an IPv4 address */
        setsockopt(copy, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    setsockopt(copy, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &off, sizeof off);
    pthread_mutex_lock(&lock);
    set_option(copy, SO_REUSEADDR, 1); /* and it stays so: an earlier session with the device may have left connections */
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

int listen_own(int copy, const struct place *actual, int backlog)
{
    int has_guard;

    pthread_mutex_lock(&lock);
    has_guard = guard_of(actual) != NULL;
    pthread_mutex_unlock(&lock);
    return !has_guard ? EADDRNOTAVAIL : listen(copy, backlog) < 0 ? errno : 0;
}

int find_own(int is_ipv6, uint16_t port, struct place *into)
{
    pthread_mutex_lock(&lock);
    *into = own[is_ipv6 != 0][port];
    pthread_mutex_unlock(&lock);
    return into->port != 0;
}
