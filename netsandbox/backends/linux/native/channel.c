#include "channel.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void send_record(const void *data, size_t length)
{
    while (send(CHANNEL, data, length, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            _exit(1); /* the supervisor is gone, so we end too */
}

void channel_number(char kind, int number)
{
    char record[1 + sizeof number];

    record[0] = kind;
    memcpy(record + 1, &number, sizeof number);
    send_record(record, sizeof record);
}

int send_descriptors(int socket, const void *data, size_t length, const int *descriptors, size_t count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * MAX_DOORS)];
    } control;
    struct iovec vector = { (void *)(uintptr_t)data, length };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };

    if (count > MAX_DOORS) {
        errno = E2BIG;
        return -1;
    }
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(&control.header), descriptors, sizeof(int) * count);
    }
    while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            return -1;
    return 0;
}

int channel_descriptors(int socket, char kind, const int *descriptors, size_t count)
{
    int sent = send_descriptors(socket, &kind, 1, descriptors, count);

    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        _exit(1); /* the supervisor is gone, so we end too */
    return sent;
}

void channel_await_go(void)
{
    char answer = 0;
    ssize_t length;

    do
        length = recv(CHANNEL, &answer, 1, 0);
    while (length < 0 && errno == EINTR);
    if (length != 1 || answer != 'G')
        _exit(1); /* without go, no command runs (INV-1) */
}

char channel_wish(int *number)
{
    char record[1 + sizeof *number];
    ssize_t length;

    do
        length = recv(CHANNEL, record, sizeof record, 0);
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof record || (record[0] != 'K' && record[0] != 'N' && record[0] != 'T'))
        _exit(1);
    memcpy(number, record + 1, sizeof *number);
    return record[0];
}

void fail(const char *step)
{
    char record[256] = "E";
    int number = errno;
    size_t length = strnlen(step, sizeof record - 1 - sizeof number);

    memcpy(record + 1, &number, sizeof number);
    memcpy(record + 1 + sizeof number, step, length);
    send_record(record, 1 + sizeof number + length);
    _exit(1);
}
