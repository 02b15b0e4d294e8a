/* The calls on stand-ins that carry an address. Others continue: the kernel makes them on the pair of sockets, which leads to
 * us. Of several messages in one call the first is sent or received, as these calls may. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "datagrams.h"
#include "trap_pool.h"

#define MAX_PARTS 64
#define LATER 50 /* milliseconds between looks at a caller that waits */
#define RESTART 512 /* ERESTARTSYS: the kernel interrupts the call, or makes it again after the handler */

/* struct msghdr of a caller with 64 bits, the only ABI that the filter lets pass; in a struct mmsghdr a u32 length follows. */
struct message {
    uint64_t name;
    uint32_t name_length;
    uint32_t unused;
    uint64_t parts;
    uint64_t part_count;
    uint64_t control;
    uint64_t control_length;
    uint32_t flags;
    uint32_t unused2;
};

struct part {
    uint64_t base;
    uint64_t length;
};

static _Thread_local char data[MAX_DATAGRAM];

static int read_all(pid_t pid, uint64_t address, void *into, size_t size)
{
    return size == 0 || caller_memory(pid, address, into, size) == (ssize_t)size;
}

static int read_message(const struct seccomp_notif *call, struct message *message, struct part *parts)
{
    if (!read_all((pid_t)call->pid, call->data.args[1], message, sizeof *message))
        return EFAULT;
    if (message->part_count > MAX_PARTS)
        return EMSGSIZE;
    return read_all((pid_t)call->pid, message->parts, parts, message->part_count * sizeof *parts) ? 0 : EFAULT;
}

static int gather(pid_t pid, const struct part *parts, size_t count, size_t *length)
{
    *length = 0;
    for (size_t number = 0; number < count; number++) {
        if (parts[number].length > MAX_DATAGRAM - *length)
            return EMSGSIZE;
        if (!read_all(pid, parts[number].base, data + *length, parts[number].length))
            return EFAULT;
        *length += parts[number].length;
    }
    return 0;
}

/* 0, or an errno; *stored* is how many bytes found room. */
static int scatter(const struct seccomp_notif *call, const struct part *parts, size_t count, size_t length, size_t *stored)
{
    *stored = 0;
    for (size_t number = 0; number < count && *stored < length; number++) {
        size_t size = parts[number].length < length - *stored ? parts[number].length : length - *stored;

        if (size > 0 && !caller_store(call, parts[number].base, data + *stored, size))
            return EFAULT;
        *stored += size;
    }
    return 0;
}

/* The length of the first message, for calls with several. */
static int tell_length(const struct seccomp_notif *call, size_t length)
{
    uint32_t told = (uint32_t)length;

    return caller_store(call, call->data.args[1] + sizeof(struct message), &told, sizeof told) ? 0 : EFAULT;
}

/* Of a stand-in without a peer the last destination is remembered: replies seem to come from there. */
static int send_to(const struct seccomp_notif *call, struct entry *entry, const struct message *message,
                   const struct part *parts, size_t *length)
{
    union address address;
    struct place wanted;
    int error;

    if (message->name_length > sizeof address.space)
        return EINVAL;
    memset(&address, 0, sizeof address);
    if (!read_all((pid_t)call->pid, message->name, &address, message->name_length))
        return EFAULT;
    error = place_read(entry->family, &address, message->name_length, &wanted);
    if (error == 0)
        error = gather((pid_t)call->pid, parts, message->part_count, length);
    if (error == 0 && !is_waiting(call))
        error = EACCES;
    if (error)
        return error;
    if (!entry->has_peer)
        entry->peer = wanted;
    datagram_route(entry, &wanted, data, *length);
    return 0;
}

void datagram_send(const struct seccomp_notif *call, struct entry *entry)
{
    struct message message = { .name = call->data.args[4], .name_length = (uint32_t)call->data.args[5], .part_count = 1 };
    struct part parts[MAX_PARTS] = { { call->data.args[1], call->data.args[2] } };
    int is_many = call->data.nr == SYS_sendmmsg && call->data.args[2] > 0;
    size_t length = 0;
    int error = call->data.nr == SYS_sendto ? 0 : read_message(call, &message, parts);
    int has_name = message.name != 0 && message.name_length > 0;

    if (error == 0 && has_name)
        error = send_to(call, entry, &message, parts, &length);
    else if (error == 0 && !entry->has_peer)
        error = EDESTADDRREQ;
    if (error == 0 && has_name && is_many)
        error = tell_length(call, length);
    entry_done(entry);
    if (error == 0 && !has_name)
        let_go_on(call);
    else
        answer(call, error, is_many ? 1 : (int64_t)length);
}

/* Waits until a datagram is there. 0, or an errno; other calls go on meanwhile. The entry is not held. */
static int await_datagram(const struct seccomp_notif *call, int copy)
{
    struct pollfd watched = { .fd = copy, .events = POLLIN };
    struct timeval limit = { 0, 0 };
    socklen_t size = sizeof limit;
    int64_t most;
    int64_t waited = 0;
    int seen = 0;

    if (!hand_over())
        return EAGAIN;
    getsockopt(copy, SOL_SOCKET, SO_RCVTIMEO, &limit, &size);
    most = (int64_t)limit.tv_sec * 1000 + limit.tv_usec / 1000;
    for (;;) {
        int waits;

        if (poll(&watched, 1, LATER) > 0)
            return 0;
        waited += LATER;
        if (!is_waiting(call))
            return EINTR;
        waits = signal_waits((pid_t)call->pid);
        if (waits + seen >= 2)
            return most > 0 ? EINTR : RESTART;
        seen = waits;
        if (most > 0 && waited >= most)
            return EAGAIN;
    }
}

/* Takes one datagram, and the address that it came from. Its length, or -1 with errno. The entry is done with. */
static ssize_t take_one(const struct seccomp_notif *call, struct entry *entry, int flags, union address *from, socklen_t *size)
{
    ino_t inode = entry->inode;

    while (entry != NULL) {
        ssize_t length = recv(entry->copy, data, MAX_DATAGRAM, MSG_DONTWAIT | (flags & MSG_PEEK));
        int error = length < 0 ? errno : 0;
        int may_wait = error == EAGAIN && !(flags & MSG_DONTWAIT) && !(fcntl(entry->copy, F_GETFL) & O_NONBLOCK);
        int copy = may_wait ? dup(entry->copy) : -1;

        *size = place_write(entry->family, &entry->peer, from);
        entry_done(entry);
        if (may_wait)
            error = copy < 0 ? EMFILE : await_datagram(call, copy);
        if (copy >= 0)
            close(copy);
        if (error || !may_wait) {
            errno = error;
            return error ? -1 : length;
        }
        entry = entry_take(inode);
    }
    errno = EBADF;
    return -1;
}

static int receive_message(const struct seccomp_notif *call, const struct message *asked, const struct part *parts,
                           const union address *from, socklen_t size, size_t length, size_t *stored)
{
    struct message message = *asked;
    int error = scatter(call, parts, message.part_count, length, stored);

    if (error)
        return error;
    if (!caller_store(call, message.name, from, size < message.name_length ? size : message.name_length))
        return EFAULT;
    message.name_length = size;
    message.control_length = 0;
    message.flags = *stored < length ? MSG_TRUNC : 0;
    return caller_store(call, call->data.args[1], &message, sizeof message) ? 0 : EFAULT;
}

void datagram_receive(const struct seccomp_notif *call, struct entry *entry)
{
    struct message message = { .name = call->data.args[4], .part_count = 1 };
    struct part parts[MAX_PARTS] = { { call->data.args[1], call->data.args[2] } };
    int is_one = call->data.nr == SYS_recvfrom;
    int is_many = call->data.nr == SYS_recvmmsg;
    int flags = (int)call->data.args[call->data.nr == SYS_recvmsg ? 2 : 3];
    int error = is_one ? 0 : read_message(call, &message, parts);
    union address from;
    socklen_t size;
    size_t stored = 0;
    ssize_t length;

    if (error || message.name == 0) {
        entry_done(entry);
        if (error)
            answer(call, error, 0);
        else
            let_go_on(call);
        return;
    }
    length = take_one(call, entry, flags, &from, &size);
    if (length < 0)
        error = errno;
    else if (!is_one)
        error = receive_message(call, &message, parts, &from, size, (size_t)length, &stored);
    else if ((error = scatter(call, parts, 1, (size_t)length, &stored)) == 0)
        error = write_address(call, call->data.args[4], call->data.args[5], &from, size);
    if (error == 0 && is_many)
        error = tell_length(call, stored);
    answer(call, error, is_many ? 1 : flags & MSG_TRUNC ? (int64_t)length : (int64_t)stored);
}
