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
#include "descendants.h"
#include "questions.h"
#include "setup.h"

#define DNS_PORT 53
#define FIRST_PORT 32768
#define LAST_PORT 60999
#define MAX_EVENTS 32
#define MAX_TURN 1024 /* more than a stand-in holds */

static int events = -1;

static struct place localhost(int is_version_4, uint16_t port)
{
    struct place made = { .port = port };

    memcpy(made.address, &in6addr_loopback, sizeof made.address);
    return is_version_4 ? place_of_ipv4(INADDR_LOOPBACK, port) : made;
}

int datagram_socket(const struct seccomp_notif *call, int family, int flags)
{
    static uint16_t port = LAST_PORT; /* only to be seen: nothing is sent there */
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
    port = port == LAST_PORT ? FIRST_PORT : (uint16_t)(port + 1);
    if (family == AF_INET)
        entry->local = place_of_ipv4(0, 0);
    entry->local.port = port;
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

void datagram_route(const struct entry *entry, const struct place *wanted, const void *data, size_t length)
{
    struct datagram header = { .remote = *wanted, .inode = entry->inode, .pid = entry->pid, .local = entry->local.port };
    struct iovec parts[2] = { { &header, sizeof header }, { (void *)(uintptr_t)data, length } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    int door = setup.doors[wanted->port == DNS_PORT ? DOOR_DATAGRAMS : DOOR_DROPPED];

    while (sendmsg(door, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
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

/* What was written before the peer changes goes to the old one, and is recorded so. 0, or an errno. */
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
    if (error)
        return error;
    entry->peer = is_unspecified(&wanted) ? localhost(is_ipv4(&wanted), wanted.port) : wanted; /* as the kernel takes it */
    entry->has_peer = 1;
    return 0;
}

/* A client's bind, without a port, has no effect. With a port it is a server's, which nobody could reach. */
int datagram_bind(const struct seccomp_notif *call, struct entry *entry, const union address *address, socklen_t length)
{
    struct question question = { .kind = QUESTION_BIND, .family = entry->family, .type = SOCK_DGRAM, .binds = 1 };
    struct verdict verdict;
    int error = place_read(entry->family, address, length, &question.place);

    if (error)
        return error;
    if (!is_unspecified(&question.place) && !is_loopback(&question.place))
        return EADDRNOTAVAIL;
    if (question.place.port == 0)
        return 0;
    error = ask(call, &question, NULL, &verdict);
    return error ? error : EACCES;
}

int datagram_name(const struct entry *entry, int is_peer, union address *into, socklen_t *length)
{
    struct place own = entry->has_peer ? localhost(is_ipv4(&entry->peer), entry->local.port) : entry->local;

    if (is_peer && !entry->has_peer)
        return ENOTCONN;
    *length = place_write(entry->family, is_peer ? &entry->peer : &own, into);
    return 0;
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

/* A connected socket hears nobody but its peer. A reply that does not fit is lost. */
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
    if (entry->kind == KIND_DATAGRAM && entry->near >= 0 && entry->local.port == header.local
        && (!entry->has_peer || same_place(&entry->peer, &header.remote)))
        send(entry->near, data + sizeof header, (size_t)length - sizeof header, MSG_DONTWAIT | MSG_NOSIGNAL);
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
