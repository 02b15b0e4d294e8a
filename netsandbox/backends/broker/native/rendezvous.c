#include "rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "trap_pool.h"
#include "waiting_connect.h"

#define BACKLOG 64
#define SOON 5        /* milliseconds after which other calls go on */
#define PATIENCE 1500 /* milliseconds; the kernel needs microseconds unless the queue is full of strangers, or the command has
                         set its socket up so that no answer gets through, such as with IP_MINTTL */
#define MAX_STRANGERS (2 * BACKLOG)

static int listener = -1;
static struct place here;
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;

void rendezvous_begin(void)
{
    union address address;
    struct place any = place_of_ipv4(setup.rendezvous, 0);
    socklen_t length = place_write(AF_INET, &any, &address);

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, &address.any, length) < 0 || listen(listener, BACKLOG) < 0)
        fail("listening at the rendezvous");
    length = sizeof address;
    if (getsockname(listener, &address.any, &length) < 0)
        fail("listening at the rendezvous");
    place_read(AF_INET, &address, length, &here);
}

static int is_ready(int socket, short events)
{
    struct pollfd watched = { .fd = socket, .events = events };

    return poll(&watched, 1, SOON) > 0 || (hand_over() && poll(&watched, 1, PATIENCE) > 0);
}

static int connect_copy(int copy, int family)
{
    union address address;
    socklen_t length = place_write(family, &here, &address);
    int error = 0;
    socklen_t size = sizeof error;
    int failed = connect_briefly(copy, &address.any, length, PATIENCE);

    if (failed != EINPROGRESS && failed != EALREADY)
        return failed == EISCONN ? 0 : failed;
    if (!is_ready(copy, POLLOUT))
        return ETIMEDOUT;
    return getsockopt(copy, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

/* The other end of the connection that comes from *source*; -1 with errno. */
static int accept_from(const struct place *source)
{
    const int on = 1;

    for (int strangers = 0; strangers < MAX_STRANGERS; strangers++) {
        union address address;
        struct place from;
        socklen_t length = sizeof address;
        int accepted = accept4(listener, &address.any, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (accepted < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            if (errno != EAGAIN)
                return -1;
            if (!is_ready(listener, POLLIN)) {
                errno = ETIMEDOUT;
                return -1;
            }
            continue;
        }
        if (place_read(AF_INET, &address, length, &from) == 0 && same_place(&from, source)) {
            setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return accepted;
        }
        close(accepted); /* a stranger */
    }
    errno = ETIMEDOUT;
    return -1;
}

/* A connection that waits now is a stranger's, and a full queue would keep the caller waiting. */
static void turn_strangers_away(void)
{
    int stranger;

    for (int number = 0; number < MAX_STRANGERS && (stranger = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; number++)
        close(stranger);
}

static int meet(int copy, int family, struct place *source, int *accepted)
{
    union address address;
    socklen_t length = sizeof address;
    int error;

    turn_strangers_away();
    error = connect_copy(copy, family);
    if (error)
        return error;
    if (getsockname(copy, &address.any, &length) < 0)
        return errno;
    error = place_read(family, &address, length, source);
    if (error)
        return error;
    *accepted = accept_from(source);
    return *accepted < 0 ? errno : 0;
}

static int hand_to_supervisor(int door, const struct arrival *arrival, int accepted)
{
    int socket = setup.doors[door];
    struct pollfd watched = { .fd = socket, .events = POLLOUT };

    if (poll(&watched, 1, 0) == 0 && !hand_over()) /* the supervisor is busy, and we would wait */
        return EAGAIN;
    return send_descriptors(socket, arrival, sizeof *arrival, &accepted, 1) < 0 ? errno : 0;
}

int join_door(const struct seccomp_notif *call, int copy, int family, int door, const struct place *wanted)
{
    struct arrival arrival = { .wanted = *wanted, .pid = (int32_t)call->pid };
    int accepted = -1;
    int error;

    if (pthread_mutex_trylock(&meeting) != 0) {
        if (!hand_over()) /* its holder may wait */
            return EAGAIN;
        pthread_mutex_lock(&meeting);
    }
    error = meet(copy, family, &arrival.source, &accepted);
    pthread_mutex_unlock(&meeting);
    if (error == 0)
        error = hand_to_supervisor(door, &arrival, accepted);
    if (accepted >= 0)
        close(accepted);
    if (error == ETOOMANYREFS)
        error = EMFILE;
    return error == EPIPE || error == ECONNRESET ? ENETUNREACH : error;
}
