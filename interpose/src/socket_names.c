/* The kernel's address of a socket becomes the one that the program knows: getsockname, getpeername, accept. */
#include "socket_names.h"

#include "hook.h"
#include "readable_memory.h"
#include "peer_addresses.h"
#include "rewrite.h"
#include "session.h"
#include "address_spelling.h"

#include <errno.h>
#include <string.h>

int ns_room_open(struct ns_room *room, struct sockaddr *name, socklen_t *length)
{
    room->name = name;
    room->length = length;
    if (name == NULL || !ns_readable(length, sizeof *length))
        return -1;
    room->size = *length;
    if (room->size < NS_NAME_BYTES && !ns_readable(name, room->size))
        return -1;
    room->written = room->size < NS_NAME_BYTES ? sizeof room->own : room->size;
    return 0;
}

struct sockaddr *ns_room_name(struct ns_room *room)
{
    return room->size < NS_NAME_BYTES ? (struct sockaddr *)&room->own : room->name;
}

void ns_name_known(int peer, uint32_t spelling, void *name, socklen_t length)
{
    const struct ns_map *map = ns_session_map();

    if (!ns_peer_restore(map, peer, name, length))
        ns_restore(map, spelling, name, length);
}

void ns_room_close(struct ns_room *room, int peer, uint32_t spelling)
{
    socklen_t whole = room->written < room->size ? room->written : room->size;

    if (room->size >= NS_NAME_BYTES) {
        ns_name_known(peer, spelling, room->name, whole);
    } else {
        ns_name_known(peer, spelling, &room->own, room->written);
        memcpy(room->name, &room->own, whole);
    }
    *room->length = room->written;
}

/* *real* queries the kernel; *spelling* is how the program wrote that end. */
static int ask_name(int fd, struct sockaddr *name, socklen_t *length,
                    int (*real)(int, struct sockaddr *, socklen_t *), int peer, uint32_t (*spelling)(int))
{
    struct ns_room room;
    int saved = errno;

    if (ns_room_open(&room, name, length) != 0)
        return real(fd, name, length);
    if (real(fd, ns_room_name(&room), &room.written) != 0)
        return -1;
    ns_room_close(&room, peer, spelling(fd));
    errno = saved;
    return 0;
}

HOOK(int, getsockname, int fd, struct sockaddr *name, socklen_t *length)
{
    return ask_name(fd, name, length, REAL(getsockname), NS_NO_PEER, ns_spelling_local);
}

HOOK(int, getpeername, int fd, struct sockaddr *name, socklen_t *length)
{
    return ask_name(fd, name, length, REAL(getpeername), fd, ns_spelling_peer);
}

/* Both ends of an accepted connection are spelled like its listener, but a wildcard becomes loopback. */
static uint32_t inherit(int listener, int accepted)
{
    uint32_t spelling = ns_spelling_local(listener);

    if (spelling == NS_SPELT_ANY4 || spelling == NS_SPELT_ANY6)
        spelling = NS_SPELT_DEFAULT;
    ns_spelling_set(accepted, spelling, spelling);
    return spelling;
}

/* macOS has no accept4, and accept(2) is accept4 without flags. */
static int real_accept(int fd, struct sockaddr *name, socklen_t *length, int flags)
{
#ifdef __APPLE__
    (void)flags;
#else
    if (flags)
        return REAL(accept4)(fd, name, length, flags);
#endif
    return REAL(accept)(fd, name, length);
}

static int accept_named(int fd, struct sockaddr *name, socklen_t *length, int flags)
{
    struct ns_room room;
    uint32_t spelling;
    int saved = errno;
    int open = ns_room_open(&room, name, length) == 0;
    int accepted =
        open ? real_accept(fd, ns_room_name(&room), &room.written, flags) : real_accept(fd, name, length, flags);

    if (accepted < 0)
        return accepted;
    spelling = inherit(fd, accepted);
    if (open)
        ns_room_close(&room, NS_NO_PEER, spelling);
    errno = saved;
    return accepted;
}

HOOK(int, accept, int fd, struct sockaddr *name, socklen_t *length)
{
    return accept_named(fd, name, length, 0);
}

#ifndef __APPLE__
HOOK(int, accept4, int fd, struct sockaddr *name, socklen_t *length, int flags)
{
    return accept_named(fd, name, length, flags);
}
#endif
