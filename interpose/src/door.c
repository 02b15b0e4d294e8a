/* Nothing here keeps state. A caller whose descriptor must not leak disables cancellation. */
#include "door.h"

#include "real_functions.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#define NO_SIGNAL 0 /* SO_NOSIGPIPE instead */
#else
#define NO_SIGNAL MSG_NOSIGNAL
#endif

int64_t ns_deadline(int milliseconds)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + milliseconds;
}

int ns_wait(int fd, short events, int64_t deadline)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        int64_t left = deadline - ns_deadline(0);
        int ready = left > 0 ? poll(&one, 1, (int)left) : 0;

        if (ready > 0)
            return 0;
        if (ready == 0 || errno != EINTR)
            return -1;
    }
}

#ifdef __APPLE__
/* MSG_NOSIGNAL is newer than macOS 11. */
int ns_quiet(int fd)
{
    int before = 0;
    int on = 1;
    socklen_t size = sizeof before;

    getsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &before, &size);
    ns_loud(fd, on);
    return before;
}

void ns_loud(int fd, int before)
{
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &before, sizeof before);
}
#endif

int ns_door_socket(int type)
{
#ifdef __APPLE__
    int fd = socket(AF_INET, type, 0);

    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    ns_quiet(fd);
    return fd;
#else
    return socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#endif
}

#ifdef __linux__
/* Linux keeps the result of a connect in progress until connect(2) is called once more. */
static void settle(int fd, const void *name, uint32_t length)
{
    REAL(connect)(fd, name, length);
}
#else
static void settle(int fd, const void *name, uint32_t length)
{
    (void)fd, (void)name, (void)length;
}
#endif

int ns_door_reach(int fd, const void *name, uint32_t length, int64_t deadline)
{
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;

    if (REAL(connect)(fd, name, length) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EINTR)
        return -1;
    if (ns_wait(fd, POLLOUT, deadline) == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0)
        settle(fd, name, length);
    errno = error;
    return error == 0 ? 0 : -1;
}

int ns_door_tell(int fd, const void *data, size_t size, int64_t deadline)
{
    size_t done = 0;

    while (done < size) {
        ssize_t sent = send(fd, (const char *)data + done, size - done, NO_SIGNAL);

        if (sent > 0)
            done += (size_t)sent;
        else if (errno != EINTR && (errno != EAGAIN || ns_wait(fd, POLLOUT, deadline) != 0))
            return -1;
    }
    return 0;
}
