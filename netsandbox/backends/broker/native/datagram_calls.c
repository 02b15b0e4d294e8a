/* The calls on stand-ins that carry an address: sendto, sendmsg, sendmmsg, recvfrom, recvmsg, recvmmsg. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "datagram_routes.h"
#include "datagrams.h"
#include "trap_pool.h"

#define MAX_DATAGRAM 65507
#define MAX_PARTS 64
#define LATER 50 /* milliseconds between looks at a caller that waits */
#define RESTART 512 /* ERESTARTSYS: the kernel interrupts the call, or makes it again after the handler */

/* struct msghdr and struct mmsghdr of a caller with 64 bits, the only ABI that the filter lets pass. */
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

#define MULTIPLE_SIZE (sizeof(struct message) + 8) /* struct mmsghdr: the message, u32 length */

static int read_all(pid_t pid, uint64_t address, void *into, size_t size)
{
    return size == 0 || caller_memory(pid, address, into, size) == (ssize_t)size;
}

static int read_message(pid_t pid, uint64_t address, struct message *message, struct part *parts)
{
    if (!read_all(pid, address, message, sizeof *message))
        return EFAULT;
    if (message->part_count > MAX_PARTS)
        return EMSGSIZE;
    return read_all(pid, message->parts, parts, message->part_count * sizeof *parts) ? 0 : EFAULT;
}

static int gather(pid_t pid, const struct part *parts, size_t count, char *into, size_t *length)
{
    *length = 0;
    for (size_t number = 0; number < count; number++) {
        if (parts[number].length > MAX_DATAGRAM - *length)
            return EMSGSIZE;
        if (!read_all(pid, parts[number].base, into + *length, parts[number].length))
            return EFAULT;
        *length += parts[number].length;
    }
    return 0;
}

/* Returns how many bytes found room. */
static ssize_t scatter(pid_t pid, const struct part *parts, size_t count, const char *from, size_t length)
{
    size_t done = 0;

    for (size_t number = 0; number < count && done < length; number++) {
        size_t size = parts[number].length < length - done ? parts[number].length : length - done;

        if (size > 0 && caller_store(pid, parts[number].base, from + done, size) != (ssize_t)size)
            return -1;
        done += size;
    }
    return (ssize_t)done;
}

static int destination(const struct seccomp_notif *call, const struct entry *entry, uint64_t name, uint32_t length,
                       struct place *into)
{
    union address address;

    if (name == 0 || length == 0) {
        *into = entry->peer;
        return entry->has_peer ? 0 : entry->family == AF_INET6 || entry->family == AF_INET ? EDESTADDRREQ : EINVAL;
    }
    if (length > sizeof address.space)
        return EINVAL;
    memset(&address, 0, sizeof address);
    if (!read_all((pid_t)call->pid, name, &address, length))
        return EFAULT;
    return place_read(entry->family, &address, length, into);
}

static int send_one(const struct seccomp_notif *call, struct entry *entry, const struct message *message,
                    const struct part *parts, size_t *length)
{
    static _Thread_local char data[MAX_DATAGRAM];
    struct place wanted;
    int error = destination(call, entry, message->name, message->name_length, &wanted);

    if (error == 0)
        error = gather((pid_t)call->pid, parts, message->part_count, data, length);
    if (error == 0 && !is_waiting(call))
        error = EACCES;
    return error ? error : datagram_route(entry, &wanted, data, *length);
}

static void send_many(const struct seccomp_notif *call, struct entry *entry)
{
    struct part parts[MAX_PARTS];
    uint32_t count = (uint32_t)call->data.args[2];
    uint32_t sent = 0;
    int error = 0;

    for (; sent < count && sent < 1024 && error == 0; sent += error == 0) {
        uint64_t at = call->data.args[1] + sent * MULTIPLE_SIZE;
        struct message message;
        size_t length = 0;
        uint32_t told;

        error = read_message((pid_t)call->pid, at, &message, parts);
        if (error == 0)
            error = send_one(call, entry, &message, parts, &length);
        told = (uint32_t)length;
        if (error == 0 && caller_store((pid_t)call->pid, at + sizeof message, &told, sizeof told) != (ssize_t)sizeof told)
            error = EFAULT;
    }
    answer(call, sent > 0 ? 0 : error, sent);
}

void datagram_send(const struct seccomp_notif *call, struct entry *entry)
{
    struct message message = { .name = call->data.args[4], .name_length = (uint32_t)call->data.args[5], .part_count = 1 };
    struct part parts[MAX_PARTS] = { { call->data.args[1], call->data.args[2] } };
    size_t length = 0;
    int error = 0;

    if (call->data.nr == SYS_sendmmsg) {
        send_many(call, entry);
        return;
    }
    if (call->data.nr == SYS_sendmsg)
        error = read_message((pid_t)call->pid, call->data.args[1], &message, parts);
    if (error == 0)
        error = send_one(call, entry, &message, parts, &length);
    answer(call, error, (int64_t)length);
}

/* Where the datagram came from that was just taken. Programs may have read some without an address, so those before it
 * are forgotten. */
static struct place source_taken(struct entry *entry, const char *data, size_t length, int peeks)
{
    struct place none = { .port = 0 };
    uint32_t hash = datagram_hash(data, length);

    for (size_t step = 0; step < entry->source_count; step++) {
        size_t slot = (entry->source_first + step) % MAX_SOURCES;

        if (entry->sources[slot].length != length || entry->sources[slot].hash != hash)
            continue;
        if (!peeks) {
            entry->source_first = (slot + 1) % MAX_SOURCES;
            entry->source_count -= step + 1;
        }
        return entry->sources[slot].from;
    }
    return entry->has_peer ? entry->peer : none;
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

/* Takes one datagram: its length, or -1 with errno. */
static ssize_t take_one(const struct seccomp_notif *call, struct entry **entry, char *data, int flags, struct place *from)
{
    ino_t inode = (*entry)->inode;

    for (;;) {
        ssize_t length = recv((*entry)->copy, data, MAX_DATAGRAM, MSG_DONTWAIT | (flags & MSG_PEEK));
        int copy;
        int error;

        if (length >= 0) {
            *from = source_taken(*entry, data, (size_t)length, flags & MSG_PEEK);
            return length;
        }
        if (errno != EAGAIN || flags & MSG_DONTWAIT || fcntl((*entry)->copy, F_GETFL) & O_NONBLOCK)
            return -1;
        copy = dup((*entry)->copy);
        entry_done(*entry);
        *entry = NULL;
        error = copy < 0 ? EMFILE : await_datagram(call, copy);
        if (copy >= 0)
            close(copy);
        if (error == 0)
            *entry = entry_take(inode);
        if (*entry == NULL || error) {
            errno = error ? error : EBADF;
            return -1;
        }
    }
}

static int receive_message(const struct seccomp_notif *call, struct entry **entry, uint64_t at, int flags, size_t *length)
{
    static _Thread_local char data[MAX_DATAGRAM];
    struct message message;
    struct part parts[MAX_PARTS];
    struct place from;
    ssize_t size;
    ssize_t stored;
    union address address;
    socklen_t name_length = 0;
    int error = read_message((pid_t)call->pid, at, &message, parts);

    if (error)
        return error;
    size = take_one(call, entry, data, flags, &from);
    if (size < 0)
        return errno;
    stored = scatter((pid_t)call->pid, parts, message.part_count, data, (size_t)size);
    if (stored < 0)
        return EFAULT;
    if (message.name != 0) {
        socklen_t whole = place_write((*entry)->family, &from, &address);

        name_length = whole < message.name_length ? whole : message.name_length;
        if (caller_store((pid_t)call->pid, message.name, &address, name_length) != (ssize_t)name_length)
            return EFAULT;
        name_length = whole;
    }
    message.name_length = name_length;
    message.control_length = 0;
    message.flags = stored < size ? MSG_TRUNC : 0;
    if (caller_store((pid_t)call->pid, at, &message, sizeof message) != (ssize_t)sizeof message)
        return EFAULT;
    *length = (size_t)(flags & MSG_TRUNC ? size : stored);
    return 0;
}

static void receive_many(const struct seccomp_notif *call, struct entry **entry)
{
    uint32_t count = (uint32_t)call->data.args[2];
    int flags = (int)call->data.args[3];
    uint32_t got = 0;
    int error = 0;

    for (; got < count && got < 1024 && error == 0; got += error == 0) {
        uint64_t at = call->data.args[1] + got * MULTIPLE_SIZE;
        size_t length = 0;
        uint32_t told;

        error = receive_message(call, entry, at, got > 0 ? flags | MSG_DONTWAIT : flags & ~MSG_WAITFORONE, &length);
        told = (uint32_t)length;
        if (error == 0 && caller_store((pid_t)call->pid, at + sizeof(struct message), &told, sizeof told) != (ssize_t)sizeof told)
            error = EFAULT;
    }
    answer(call, got > 0 ? 0 : error, got);
}

static int receive_from(const struct seccomp_notif *call, struct entry **entry, size_t *length)
{
    static _Thread_local char data[MAX_DATAGRAM];
    struct place from;
    union address address;
    int flags = (int)call->data.args[3];
    ssize_t size = take_one(call, entry, data, flags, &from);
    size_t stored;
    socklen_t name_length;

    if (size < 0)
        return errno;
    stored = (size_t)size < call->data.args[2] ? (size_t)size : call->data.args[2];
    if (stored > 0 && caller_store((pid_t)call->pid, call->data.args[1], data, stored) != (ssize_t)stored)
        return EFAULT;
    name_length = place_write((*entry)->family, &from, &address);
    *length = flags & MSG_TRUNC ? (size_t)size : stored;
    return write_address(call, call->data.args[4], call->data.args[5], &address, name_length);
}

void datagram_receive(const struct seccomp_notif *call, struct entry *entry)
{
    size_t length = 0;
    int error;

    if (call->data.nr == SYS_recvmmsg) {
        receive_many(call, &entry);
    } else {
        error = call->data.nr == SYS_recvmsg
            ? receive_message(call, &entry, call->data.args[1], (int)call->data.args[2], &length)
            : receive_from(call, &entry, &length);
        answer(call, error, (int64_t)length);
    }
    if (entry != NULL)
        entry_done(entry);
}
