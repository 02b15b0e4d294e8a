#include "plan_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "channel.h"

#define MAX_PLAN 1048576

static unsigned char plan[MAX_PLAN] __attribute__((aligned(8)));

/* The plan comes in parts, as long as the first byte of each is not zero. */
size_t read_plan(const unsigned char **into)
{
    size_t length = 0;
    unsigned char more;

    do {
        struct iovec parts[] = { { &more, sizeof more }, { plan + length, sizeof plan - length } };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
        ssize_t part;

        do
            part = recvmsg(CHANNEL, &message, 0);
        while (part < 0 && errno == EINTR);
        if (part <= 0)
            _exit(1);
        if (message.msg_flags & MSG_TRUNC) {
            errno = E2BIG;
            fail("reading the plan");
        }
        length += (size_t)part - 1;
    } while (more);
    *into = plan;
    return length;
}

uint32_t plan_number(struct reader *reader)
{
    uint32_t value;

    if (reader->left < sizeof value) {
        errno = EBADMSG;
        fail("reading the plan");
    }
    memcpy(&value, reader->at, sizeof value);
    reader->at += sizeof value;
    reader->left -= sizeof value;
    return value;
}

const char *plan_text(struct reader *reader)
{
    const char *start = (const char *)reader->at;
    size_t length = strnlen(start, reader->left);

    if (length == reader->left) {
        errno = EBADMSG;
        fail("reading the plan");
    }
    reader->at += length + 1;
    reader->left -= length + 1;
    return start;
}

int plan_step(struct reader *all, unsigned char *operation, struct reader *payload)
{
    if (all->left == 0)
        return 0;
    *operation = *all->at;
    all->at++;
    all->left--;
    payload->left = plan_number(all);
    payload->at = all->at;
    if (payload->left > all->left) {
        errno = EBADMSG;
        fail("reading the plan");
    }
    all->at += payload->left;
    all->left -= payload->left;
    return 1;
}
