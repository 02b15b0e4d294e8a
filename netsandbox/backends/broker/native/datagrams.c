#include "datagrams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "channel.h"
#include "datagram_routes.h"
#include "descendants.h"
#include "setup.h"

#define DNS_PORT 53
#define FIRST_PORT 32768
#define LAST_PORT 60999
#define MAX_EVENTS 32
#define MAX_DATAGRAM 65507
#define MAX_TURN 1024 /* more than a stand-in holds */

static int events = -1;

static int route_before_change(struct entry *entry);

/* Any free port, in turn. */
static uint16_t any_port(void)
{
    static uint16_t next = FIRST_PORT;

    for (int tries = FIRST_PORT; tries <= LAST_PORT; tries++) {
        next = next == LAST_PORT ? FIRST_PORT : (uint16_t)(next + 1);
        if (!is_port_taken(next))
            return next;
    }
    return 0;
}

static struct place any_place(int family)
{
    struct place any = { .port = 0 };

    return family == AF_INET ? place_of_ipv4(0, 0) : any;
}

/* A port for a stand-in that has none. 0, or an errno. */
static int bind_if_needed(struct entry *entry)
{
    if (entry->has_local)
        return 0;
    entry->local = any_place(entry->family);
    entry->local.port = any_port();
    entry->has_local = entry->local.port != 0;
    return entry->has_local ? 0 : EAGAIN;
}

int datagram_socket(const struct seccomp_notif *call, int family, int flags)
{
    int ends[2];
    struct entry *entry;
    struct epoll_event wanted = { .events = EPOLLIN };

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), 0, ends) < 0)
        return errno;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    entry = entry_add(ends[0], ends[1], KIND_DATAGRAM, family, SOCK_DGRAM, (pid_t)call->pid);
    if (entry == NULL) {
        close(ends[0]);
        close(ends[1]);
        return ENOMEM;
    }
    wanted.data.u64 = entry->inode;
    if (epoll_ctl(events, EPOLL_CTL_ADD, ends[1], &wanted) < 0) {
        entry_remove(entry);
        return ENOBUFS;
    }
    if (answer_with(call, ends[0], flags & SOCK_CLOEXEC) != 0)
        entry_remove(entry);
    else
        entry_done(entry);
    return 0;
}

int datagram_connect(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    struct place wanted;
    int error = route_before_change(entry);

    (void)call;
    if (error)
        return error;
    if (length >= sizeof(sa_family_t) && address->any.sa_family == AF_UNSPEC) {
        entry->has_peer = 0;
        return 0;
    }
    error = place_read(entry->family, address, length, &wanted);
    if (error == 0)
        error = bind_if_needed(entry);
    if (error)
        return error;
    if (is_unspecified(&wanted)) { /* the kernel takes it for localhost */
        struct place localhost = { .port = wanted.port };

        memcpy(localhost.address, &in6addr_loopback, sizeof localhost.address);
        wanted = is_ipv4(&wanted) ? place_of_ipv4(INADDR_LOOPBACK, wanted.port) : localhost;
    }
    entry->peer = wanted;
    entry->has_peer = 1;
    return 0;
}

int datagram_bind(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    struct place asked;
    int error = place_read(entry->family, address, length, &asked);

    (void)call;
    if (error)
        return error;
    if (entry->has_local)
        return EINVAL;
    if (!is_unspecified(&asked) && !is_loopback(&asked))
        return EADDRNOTAVAIL;
    if (asked.port > 0 && asked.port < 1024)
        return EACCES;
    if (asked.port != 0 && is_port_taken(asked.port)) {
        sweep_sockets(1);
        if (is_port_taken(asked.port))
            return EADDRINUSE;
    }
    entry->local = asked;
    if (asked.port == 0)
        entry->local.port = any_port();
    entry->has_local = entry->local.port != 0;
    return entry->has_local ? 0 : EADDRINUSE;
}

int datagram_name(const struct entry *entry, int is_peer, union address *into, socklen_t *length)
{
    struct place shown = is_peer ? entry->peer : entry->has_local ? entry->local : any_place(entry->family);

    if (is_peer && !entry->has_peer)
        return ENOTCONN;
    if (!is_peer && entry->has_peer && is_unspecified(&shown)) { /* a route was chosen: our own loopback */
        struct place localhost = { .port = shown.port };

        memcpy(localhost.address, &in6addr_loopback, sizeof localhost.address);
        shown = is_ipv4(&entry->peer) ? place_of_ipv4(INADDR_LOOPBACK, shown.port) : localhost;
    }
    *length = place_write(entry->family, &shown, into);
    return 0;
}

uint32_t datagram_hash(const void *data, size_t length)
{
    const unsigned char *byte = data;
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (size_t number = 0; number < length && number < 64; number++)
        hash = (hash ^ byte[number]) * 16777619U;
    return hash;
}

/* Puts a datagram into a stand-in. One that does not fit is lost, as UDP may. */
static void deliver(struct entry *entry, const struct place *from, const void *data, size_t length)
{
    size_t slot;

    if (entry->has_peer && !same_place(&entry->peer, from))
        return; /* a connected socket hears nobody else */
    if (entry->near < 0 || send(entry->near, data, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return;
    if (entry->source_count == MAX_SOURCES) {
        entry->source_first = (entry->source_first + 1) % MAX_SOURCES;
        entry->source_count--;
    }
    slot = (entry->source_first + entry->source_count++) % MAX_SOURCES;
    entry->sources[slot].from = *from;
    entry->sources[slot].length = (uint32_t)length;
    entry->sources[slot].hash = datagram_hash(data, length);
}

/* Where a stand-in's datagrams seem to come from. */
static struct place source_of(const struct entry *entry, const struct place *wanted)
{
    struct place source = entry->local;
    struct place localhost = { .port = source.port };

    memcpy(localhost.address, &in6addr_loopback, sizeof localhost.address);
    if (is_unspecified(&source))
        source = is_ipv4(wanted) ? place_of_ipv4(INADDR_LOOPBACK, source.port) : localhost;
    return source;
}

int datagram_route(struct entry *entry, const struct place *wanted, const void *data, size_t length)
{
    struct datagram header = { .remote = *wanted, .inode = entry->inode, .pid = entry->pid };
    struct iovec parts[2] = { { &header, sizeof header }, { (void *)(uintptr_t)data, length } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    struct place from;
    struct entry *other;
    int error = bind_if_needed(entry);

    if (error)
        return error;
    header.local = entry->local.port;
    from = source_of(entry, wanted);
    if (is_loopback(wanted) && wanted->port != DNS_PORT) {
        if (entry->local.port == wanted->port) {
            deliver(entry, &from, data, length);
            return 0;
        }
        other = entry_bound(wanted);
        if (other == NULL)
            return entry->has_peer ? ECONNREFUSED : 0;
        deliver(other, &from, data, length);
        entry_done(other);
        return 0;
    }
    while (sendmsg(setup.doors[wanted->port == DNS_PORT ? DOOR_DATAGRAMS : DOOR_DROPPED], &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            return 0; /* lost */
    return 0;
}

/* What a program wrote without an address, to the peer of its stand-in. One that writes all the time gets its turn again. */
static void route_written(struct entry *entry, char *data)
{
    ssize_t length;

    for (int turn = 0; turn < MAX_TURN && entry->near >= 0; turn++) {
        length = recv(entry->near, data, MAX_DATAGRAM + 1, MSG_DONTWAIT);
        if (length < 0 || (length == 0 && entry->has_peer == 0))
            break;
        if (entry->has_peer && length <= MAX_DATAGRAM)
            datagram_route(entry, &entry->peer, data, (size_t)length);
        if (length == 0) { /* an empty datagram, or shutdown(2), after which nothing more is written */
            struct pollfd state = { .fd = entry->near, .events = POLLRDHUP };

            if (poll(&state, 1, 0) > 0 && state.revents & (POLLHUP | POLLRDHUP))
                epoll_ctl(events, EPOLL_CTL_DEL, entry->near, NULL);
            break;
        }
    }
}

static void take_written(ino_t inode)
{
    static char data[MAX_DATAGRAM + 1];
    struct entry *entry = entry_take(inode);

    if (entry == NULL)
        return;
    route_written(entry, data);
    entry_done(entry);
}

/* What was written before the peer changes goes to the old one, and is recorded so. */
static int route_before_change(struct entry *entry)
{
    struct pollfd watched = { .fd = entry->near, .events = POLLIN };
    char *data;

    if (!entry->has_peer || poll(&watched, 1, 0) <= 0)
        return 0;
    data = malloc(MAX_DATAGRAM + 1);
    if (data == NULL)
        return ENOBUFS;
    route_written(entry, data);
    free(data);
    return 0;
}

static void take_reply(void)
{
    static char data[sizeof(struct datagram) + MAX_DATAGRAM];
    struct datagram header;
    ssize_t length = recv(setup.doors[DOOR_DATAGRAMS], data, sizeof data, MSG_DONTWAIT);
    struct entry *entry;

    if (length == 0)
        end_session();
    if (length < (ssize_t)sizeof header)
        return;
    memcpy(&header, data, sizeof header);
    entry = entry_take((ino_t)header.inode);
    if (entry == NULL)
        return;
    if (entry->kind == KIND_DATAGRAM && entry->has_local && entry->local.port == header.local)
        deliver(entry, &header.remote, data + sizeof header, (size_t)length - sizeof header);
    entry_done(entry);
}

static void *serve_datagrams(void *unused)
{
    struct epoll_event ready[MAX_EVENTS];

    for (;;) {
        int count = epoll_wait(events, ready, MAX_EVENTS, -1);

        for (int number = 0; number < count; number++) {
            if (ready[number].data.u64 == 0)
                take_reply();
            else
                take_written((ino_t)ready[number].data.u64);
        }
    }
    return unused;
}

void datagrams_begin(void)
{
    struct epoll_event wanted = { .events = EPOLLIN };
    pthread_t thread;

    events = epoll_create1(EPOLL_CLOEXEC);
    if (events < 0 || epoll_ctl(events, EPOLL_CTL_ADD, setup.doors[DOOR_DATAGRAMS], &wanted) < 0
        || pthread_create(&thread, NULL, serve_datagrams, NULL) != 0)
        fail("serving datagrams");
}
