#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caller.h"
#include "datagrams.h"
#include "questions.h"
#include "shared_memory.h"
#include "signals.h"
#include "trap_pool.h"
#include "waiting_connect.h"

/* linux/seccomp.h; the flag is of Linux 5.14 */
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif
#define TYPE_MASK 0xF

int answer(const struct seccomp_notif *call, int error, int64_t value)
{
    struct seccomp_notif_resp response = { .id = call->id, .error = -error, .val = error ? 0 : value };

    if (ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0)
        return 1;
    if (errno != ENOENT && errno != EINTR)
        _exit(1);
    return 0;
}

int answer_with(const struct seccomp_notif *call, int socket, int closes_on_exec)
{
    struct seccomp_notif_addfd passed = { .id = call->id,
                                          .flags = SECCOMP_ADDFD_FLAG_SEND,
                                          .srcfd = (uint32_t)socket,
                                          .newfd_flags = closes_on_exec ? O_CLOEXEC : 0 };

    if (ioctl(trap_listener, SECCOMP_IOCTL_NOTIF_ADDFD, &passed) >= 0)
        return 0;
    if (errno == EMFILE) /* the caller's limit */
        answer(call, EMFILE, 0);
    else if (errno != ENOENT && errno != EINTR && errno != EINPROGRESS)
        answer(call, EACCES, 0);
    return EMFILE;
}

int read_address(const struct seccomp_notif *call, int pointer, int length, union address *into, socklen_t *size)
{
    uint32_t given = (uint32_t)call->data.args[length];

    memset(into, 0, sizeof *into);
    *size = 0;
    if (given > sizeof into->space)
        return EINVAL;
    if (given > 0 && caller_memory((pid_t)call->pid, call->data.args[pointer], into, given) != (ssize_t)given)
        return errno == EPERM || errno == ESRCH ? EPERM : EFAULT;
    *size = given;
    return is_waiting(call) ? 0 : EACCES;
}

int write_address(const struct seccomp_notif *call, uint64_t pointer, uint64_t length, const union address *from, socklen_t size)
{
    uint32_t room;
    uint32_t whole = size;

    if (caller_memory((pid_t)call->pid, length, &room, sizeof room) != (ssize_t)sizeof room)
        return EFAULT;
    if ((int32_t)room < 0)
        return EINVAL;
    if (room > size)
        room = size;
    if ((room > 0 && !caller_store(call, pointer, from, room)) || !caller_store(call, length, &whole, sizeof whole))
        return EFAULT;
    return 0;
}

static int netlink_socket(const struct seccomp_notif *call, int type, int protocol)
{
    int made = socket(AF_NETLINK, (type & TYPE_MASK) | SOCK_CLOEXEC | (type & SOCK_NONBLOCK), protocol);
    struct entry *entry;

    if (made < 0)
        return errno;
    entry = entry_add(made, -1, KIND_NETLINK, AF_NETLINK, type & TYPE_MASK, (pid_t)call->pid);
    if (entry == NULL) {
        close(made);
        return ENOMEM;
    }
    if (answer_with(call, made, type & SOCK_CLOEXEC) != 0)
        entry_remove(entry);
    else
        entry_done(entry);
    return 0;
}

static int refuse_family(const struct seccomp_notif *call)
{
    struct question question = { .kind = QUESTION_FAMILY, .error = EPERM };
    struct verdict verdict;
    int error;

    question.family = (uint8_t)call->data.args[0];
    question.type = (uint8_t)(call->data.args[1] & TYPE_MASK);
    question.protocol = (int32_t)call->data.args[2];
    error = ask(call, &question, NULL, &verdict);
    return error ? error : EPERM;
}

/* Sockets by family, type and protocol; each that is made answers the call by itself. */
static int make_socket(const struct seccomp_notif *call)
{
    int family = (int)call->data.args[0];
    int type = (int)call->data.args[1];
    int protocol = (int)call->data.args[2];
    int is_internet = family == AF_INET || family == AF_INET6;

    if (is_internet && (type & TYPE_MASK) == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP))
        return stream_socket(call, family, type);
    if (is_internet && (type & TYPE_MASK) == SOCK_STREAM)
        return EPROTONOSUPPORT;
    if (is_internet && (type & TYPE_MASK) == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP))
        return datagram_socket(call, family, type);
    if (family == AF_UNIX && ((type & TYPE_MASK) == SOCK_STREAM || (type & TYPE_MASK) == SOCK_SEQPACKET))
        return unix_socket(call, type & TYPE_MASK, type);
    if (family == AF_NETLINK && protocol == NETLINK_ROUTE)
        return netlink_socket(call, type, protocol);
    return refuse_family(call);
}

static void serve_socket(const struct seccomp_notif *call)
{
    int error = make_socket(call);

    if (error == EMFILE) { /* ours: copies of sockets that the programs have closed may be among the open files */
        sweep_sockets(1);
        error = make_socket(call);
    }
    if (error)
        answer(call, error, 0);
}

/* The entry of the descriptor in the first argument; NULL with the errno of a call on what is no socket of ours. */
static struct entry *entry_of(const struct seccomp_notif *call, int *error)
{
    ino_t inode = caller_inode(call, (int)call->data.args[0]);
    int number = errno;
    struct entry *entry = entry_take(inode);

    *error = entry != NULL ? 0 : inode == 0 ? number : EPERM;
    if (entry != NULL && !is_waiting(call)) { /* what was read was of another process, or it took long to get the entry */
        entry_done(entry);
        entry = NULL;
        *error = EBADF;
    }
    return entry;
}

static int connect_or_bind(const struct seccomp_notif *call, struct entry *entry, int binds)
{
    union address address;
    socklen_t length;
    int error = read_address(call, 1, 2, &address, &length);

    if (error)
        return error == EFAULT ? EFAULT : error == EINVAL ? EINVAL : refuse(call, QUESTION_INTERNAL, EACCES);
    switch (entry->kind) {
    case KIND_STREAM:
        return binds ? stream_bind(call, entry, &address, length) : stream_connect(call, entry, &address, length);
    case KIND_DATAGRAM:
        return binds ? datagram_bind(call, entry, &address, length) : datagram_connect(call, entry, &address, length);
    case KIND_UNIX:
        return binds ? unix_bind(call, entry, &address, length) : unix_connect(call, entry, &address, length);
    default:
        if (entry->copy < 0)
            return EINVAL;
        if (!binds && (address.netlink.nl_pid || address.netlink.nl_groups)) /* to a program outside, which root may */
            return EPERM;
        error = (binds ? bind(entry->copy, &address.any, length) : connect(entry->copy, &address.any, length)) < 0 ? errno : 0;
        if (error == 0)
            entry_drop_copy(entry);
        return error;
    }
}

static int listen_socket(const struct seccomp_notif *call, struct entry *entry)
{
    if (entry->kind == KIND_STREAM)
        return stream_listen(call, entry);
    if (entry->kind != KIND_UNIX)
        return EOPNOTSUPP;
    if (entry->copy < 0)
        return entry->is_listening ? 0 : EINVAL;
    if (listen(entry->copy, (int)call->data.args[1]) < 0)
        return errno;
    entry->is_listening = 1;
    entry_drop_copy(entry);
    return 0;
}

/* Before Linux 5.19 a signal takes a caller away from a call that we make at this moment, and it makes the call again: that
 * one has succeeded already. The arguments are those of the first call, or the program gets what it asked for then. */
static int was_made(const struct seccomp_notif *call, struct entry *entry)
{
    int is = entry->unheard == call->data.nr + 1;

    entry->unheard = 0;
    return is;
}

static void serve_aim(const struct seccomp_notif *call)
{
    int error;
    struct entry *entry = entry_of(call, &error);

    if (entry == NULL) {
        answer(call, error != EPERM ? error : refuse(call, QUESTION_FOREIGN, EPERM), 0);
        return;
    }
    if (was_made(call, entry))
        error = 0;
    else if (call->data.nr == SYS_listen)
        error = listen_socket(call, entry);
    else
        error = connect_or_bind(call, entry, call->data.nr == SYS_bind);
    if (!answer(call, error, 0) && error == 0)
        entry->unheard = call->data.nr + 1;
    entry_done(entry);
}

/* What a program sees as its address, or its peer's, is what it asked for. */
static int shown_name(const struct entry *entry, int is_peer, union address *into, socklen_t *length)
{
    if (entry->kind == KIND_DATAGRAM)
        return datagram_name(entry, is_peer, into, length);
    if (entry->kind == KIND_STREAM && (is_peer ? entry->has_peer : entry->has_local)) {
        *length = place_write(entry->family, is_peer ? &entry->peer : &entry->local, into);
        return 0;
    }
    if (entry->kind == KIND_UNIX && !is_peer && entry->name != NULL) {
        memset(into, 0, sizeof *into);
        memcpy(into, entry->name, entry->name_length);
        *length = entry->name_length;
        return 0;
    }
    return -1;
}

static void serve_name(const struct seccomp_notif *call)
{
    int error;
    struct entry *entry = entry_of(call, &error);
    union address shown;
    socklen_t length = 0;

    error = entry == NULL ? -1 : shown_name(entry, call->data.nr == SYS_getpeername, &shown, &length);
    if (entry != NULL)
        entry_done(entry);
    if (error < 0) { /* the kernel's own answer is right, and gives nothing away */
        let_go_on(call);
        return;
    }
    answer(call, error ? error : write_address(call, call->data.args[1], call->data.args[2], &shown, length), 0);
}

/* Options of a stand-in at a level that a Unix socket does not have, and what kind of socket it is. */
static void serve_option(const struct seccomp_notif *call)
{
    int error;
    struct entry *entry = entry_of(call, &error);
    int is_stand_in = entry != NULL && entry->kind == KIND_DATAGRAM;
    uint32_t value = 0;
    uint32_t size = 0;

    if (is_stand_in && call->data.args[1] == SOL_SOCKET)
        value = call->data.args[2] == SO_TYPE ? SOCK_DGRAM : call->data.args[2] == SO_DOMAIN ? entry->family : IPPROTO_UDP;
    if (entry != NULL)
        entry_done(entry);
    if (!is_stand_in) {
        let_go_on(call);
        return;
    }
    if (call->data.nr == SYS_getsockopt) {
        union address whole;

        memset(&whole, 0, sizeof whole);
        memcpy(&whole, &value, sizeof value);
        size = sizeof value;
        answer(call, write_address(call, call->data.args[3], call->data.args[4], &whole, size), 0);
    } else {
        answer(call, 0, 0);
    }
}

static void serve_datagram(const struct seccomp_notif *call, int receives)
{
    int is_none = (call->data.nr == SYS_sendmmsg || call->data.nr == SYS_recvmmsg) && (uint32_t)call->data.args[2] == 0;
    int error;
    struct entry *entry = entry_of(call, &error);

    if (entry != NULL && entry->kind == KIND_DATAGRAM && !is_none) {
        (receives ? datagram_receive : datagram_send)(call, entry);
        return;
    }
    if (entry != NULL)
        entry_done(entry);
    let_go_on(call); /* no socket that the command has can be aimed by its message */
}

void serve_call(struct seccomp_notif *call)
{
    switch (call->data.nr) {
    case SYS_socket:
        serve_socket(call);
        break;
    case SYS_socketpair:
        answer(call, refuse_family(call), 0);
        break;
    case SYS_connect:
    case SYS_bind:
    case SYS_listen:
        serve_aim(call);
        break;
    case SYS_getsockname:
    case SYS_getpeername:
        serve_name(call);
        break;
    case SYS_setsockopt:
    case SYS_getsockopt:
        serve_option(call);
        break;
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
        serve_datagram(call, 0);
        break;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
        serve_datagram(call, 1);
        break;
    case SYS_shmget:
    case SYS_shmat:
    case SYS_shmctl:
        serve_shared_memory(call);
        break;
    default:
        serve_signal(call);
    }
}
