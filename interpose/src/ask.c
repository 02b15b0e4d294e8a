/* One request, one reply, one second. The socket lives only here: a program that closes or counts descriptors never
 * meets it, and a thread that is being cancelled does not leave it behind. */
#include "ask.h"

#include "real.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 1000

#ifdef __APPLE__
#define NO_SIGNAL 0 /* SO_NOSIGPIPE instead */
#else
#define NO_SIGNAL MSG_NOSIGNAL
#endif

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int wait_for(int fd, short events, int64_t deadline)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        int64_t left = deadline - now_ms();
        int ready = left > 0 ? poll(&one, 1, (int)left) : 0;

        if (ready > 0)
            return 0;
        if (ready == 0 || errno != EINTR)
            return -1;
    }
}

static int open_socket(void)
{
#ifdef __APPLE__
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    return fd;
#else
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#endif
}

static int reach(int fd, uint16_t door, int64_t deadline)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(door)};
    int error = 0;
    socklen_t size = sizeof error;

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
#ifdef __APPLE__
    name.sin_len = sizeof name;
#endif
    if (REAL(connect)(fd, (const struct sockaddr *)&name, sizeof name) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EINTR)
        return -1;
    if (wait_for(fd, POLLOUT, deadline) != 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return -1;
    return error == 0 ? 0 : -1;
}

static int tell(int fd, const struct ns_request *request, int64_t deadline)
{
    size_t done = 0;

    while (done < sizeof *request) {
        ssize_t sent = send(fd, (const char *)request + done, sizeof *request - done, NO_SIGNAL);
        if (sent > 0)
            done += (size_t)sent;
        else if (errno != EINTR && (errno != EAGAIN || wait_for(fd, POLLOUT, deadline) != 0))
            return -1;
    }
    return 0;
}

static int hear(int fd, struct ns_reply *reply, int64_t deadline)
{
    size_t done = 0;

    while (done < sizeof *reply) {
        ssize_t got;

        if (wait_for(fd, POLLIN, deadline) != 0)
            return -1;
        got = recv(fd, (char *)reply + done, sizeof *reply - done, 0);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return -1;
        if (got > 0)
            done += (size_t)got;
    }
    return reply->magic == NS_MAP_MAGIC ? 0 : -1;
}

static int exchange(uint16_t door, const struct ns_request *request, struct ns_reply *reply)
{
    int64_t deadline = now_ms() + PATIENCE_MS;
    int fd = open_socket();
    int failed;

    if (fd < 0)
        return -1;
    failed = reach(fd, door, deadline) != 0 || tell(fd, request, deadline) != 0 || hear(fd, reply, deadline) != 0;
    close(fd);
    return failed ? -1 : 0;
}

int ns_ask(const struct ns_map *map, const struct ns_plan *plan, uint32_t protocol, uint16_t *port)
{
    struct ns_request request = {.magic = NS_MAP_MAGIC, .operation = NS_ASK_BIND, .port = plan->port};
    struct ns_reply reply;
    struct ns_view view;
    int saved = errno;
    int cancelling;
    int failed;

    if (ns_map_look(map, 0, &view) != 0)
        return EACCES;
    request.protocol = protocol;
    memcpy(request.address, plan->address, sizeof request.address);
    memcpy(request.token, view.token, sizeof request.token);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    failed = exchange(view.door, &request, &reply);
    pthread_setcancelstate(cancelling, NULL);
    errno = saved;
    if (failed || reply.error < 0)
        return EACCES;
    *port = reply.port;
    return reply.error;
}
