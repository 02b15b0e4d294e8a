/* One request, one reply, one second. The socket exists only within this call: a program that closes or counts
 * descriptors never sees it, and a cancelled thread does not leave it open. */
#include "bind_request.h"

#include "door.h"
#include "sockaddr.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 1000

static int receive_reply(int fd, struct ns_reply *reply, int64_t deadline)
{
    size_t done = 0;

    while (done < sizeof *reply) {
        ssize_t got;

        if (ns_wait(fd, POLLIN, deadline) != 0)
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
    int64_t deadline = ns_deadline(PATIENCE_MS);
    uint8_t name[NS_NAME_BYTES];
    uint32_t length = ns_sockaddr_localhost(AF_INET, door, name);
    int fd = ns_door_socket(SOCK_STREAM);
    int failed;

    if (fd < 0)
        return -1;
    failed = ns_door_reach(fd, name, length, deadline) != 0 ||
             ns_door_tell(fd, request, sizeof *request, deadline) != 0 || receive_reply(fd, reply, deadline) != 0;
    close(fd);
    return failed ? -1 : 0;
}

int ns_bind_request(const struct ns_map *map, const struct ns_plan *plan, uint32_t protocol, uint16_t *port)
{
    struct ns_request request = {.magic = NS_MAP_MAGIC, .operation = NS_REQUEST_BIND, .port = plan->port};
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
