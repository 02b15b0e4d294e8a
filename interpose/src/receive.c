/* recvfrom, recvmsg, recvmmsg: the sender of a datagram as the program knows it. */
#include "hook.h"
#include "readable_memory.h"
#include "socket_names.h"
#include "rewrite.h"
#include "address_spelling.h"

#include <errno.h>
#include <string.h>

/* A socket that is bound to ::1 has peers at ::1; no sender has a wildcard address. */
static uint32_t sender_spelling(int fd)
{
    return ns_spelling_local(fd) == NS_SPELT_ONE6 ? NS_SPELT_ONE6 : ns_spelling_peer(fd);
}

/* A connected or stream socket returns no address: its length is 0 and nothing was written. */
HOOK(ssize_t, recvfrom, int fd, void *data, size_t size, int flags, struct sockaddr *name, socklen_t *length)
{
    struct ns_room room;
    int saved = errno;
    ssize_t got;

    if (ns_room_open(&room, name, length) != 0)
        return REAL(recvfrom)(fd, data, size, flags, name, length);
    got = REAL(recvfrom)(fd, data, size, flags, ns_room_name(&room), &room.written);
    if (got < 0)
        return got;
    ns_room_close(&room, fd, sender_spelling(fd));
    errno = saved;
    return got;
}

#ifndef __APPLE__
/* The form of recvfrom under _FORTIFY_SOURCE; it ends the program if the data does not fit. */
HOOK(ssize_t, __recvfrom_chk, int fd, void *data, size_t size, size_t room_size, int flags, struct sockaddr *name,
     socklen_t *length)
{
    if (size > room_size)
        return REAL(__recvfrom_chk)(fd, data, size, room_size, flags, name, length);
    return ns_recvfrom(fd, data, size, flags, name, length);
}
#endif

HOOK(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
    struct ns_room room;
    struct msghdr own;
    int saved = errno;
    ssize_t got;

    if (!ns_readable(message, sizeof *message) ||
        ns_room_open(&room, message->msg_name, &message->msg_namelen) != 0)
        return REAL(recvmsg)(fd, message, flags);
    own = *message;
    own.msg_name = ns_room_name(&room);
    own.msg_namelen = room.written;
    got = REAL(recvmsg)(fd, &own, flags);
    if (got < 0)
        return got;
    room.written = own.msg_namelen;
    message->msg_controllen = own.msg_controllen;
    message->msg_flags = own.msg_flags;
    ns_room_close(&room, fd, sender_spelling(fd));
    errno = saved;
    return got;
}

#ifndef __APPLE__
#define MAX_AT_ONCE 1024u /* the kernel's UIO_MAXIOV */
#define TOGETHER 32u

/* An address that was truncated to a small buffer stays as the kernel wrote it. */
static void restore_one(int fd, struct msghdr *header, socklen_t size)
{
    if (header->msg_name != NULL && header->msg_namelen <= size)
        ns_name_known(fd, sender_spelling(fd), header->msg_name, header->msg_namelen);
}

/* How many of the buffer sizes could be read, a few messages at a time: one check covers at most a page. */
static unsigned int read_sizes(const struct mmsghdr *messages, unsigned int count, socklen_t *sizes)
{
    for (unsigned int one = 0; one < count; one++) {
        unsigned int next = count - one < TOGETHER ? count - one : TOGETHER;

        if (one % TOGETHER == 0 && !ns_readable(messages + one, next * sizeof *messages))
            return one;
        sizes[one] = messages[one].msg_hdr.msg_namelen;
    }
    return count;
}

HOOK(int, recvmmsg, int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)
{
    socklen_t sizes[MAX_AT_ONCE];
    unsigned int known = read_sizes(messages, count < MAX_AT_ONCE ? count : MAX_AT_ONCE, sizes);
    int saved = errno;
    int got = REAL(recvmmsg)(fd, messages, count, flags, timeout);

    if (got < 0)
        return got;
    for (unsigned int one = 0; one < known && one < (unsigned int)got; one++)
        restore_one(fd, &messages[one].msg_hdr, sizes[one]);
    errno = saved;
    return got;
}
#endif
