/* A static table by descriptor, like address_spelling.c, but of whole addresses. Each has a seqlock, and nothing waits
 * for it: a writer that finds another one active does nothing, and a reader then uses the kernel's address. The entry
 * of a closed descriptor is used only if the kernel reports a door as the peer of its successor. That is wrong for a
 * descriptor that was copied or received, which may show another address. */
#include "peer_addresses.h"

#ifdef NS_EGRESS

#include "sockaddr.h"

#include <string.h>

#define DESCRIPTORS 4096
#define WORDS (NS_NAME_BYTES / sizeof(uint32_t))

struct peer {
    uint32_t sequence;
    uint32_t name[WORDS]; /* of a sockaddr; the family 0: none */
};

static struct peer peers[DESCRIPTORS];

static void store(int fd, const void *name)
{
    struct peer *peer = &peers[fd];
    uint32_t before = __atomic_load_n(&peer->sequence, __ATOMIC_RELAXED);
    uint32_t words[WORDS];

    memcpy(words, name, sizeof words);
    if ((before & 1) != 0 || !__atomic_compare_exchange_n(&peer->sequence, &before, before + 1, 0, __ATOMIC_ACQUIRE,
                                                          __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (size_t word = 0; word < WORDS; word++)
        __atomic_store_n(&peer->name[word], words[word], __ATOMIC_RELAXED);
    __atomic_store_n(&peer->sequence, before + 2, __ATOMIC_RELEASE);
}

/* 0 if there is one. */
static int load(int fd, struct sockaddr_storage *name)
{
    struct peer *peer = &peers[fd];
    uint32_t before = __atomic_load_n(&peer->sequence, __ATOMIC_ACQUIRE);
    uint32_t words[WORDS];

    for (size_t word = 0; word < WORDS; word++)
        words[word] = __atomic_load_n(&peer->name[word], __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if ((before & 1) != 0 || __atomic_load_n(&peer->sequence, __ATOMIC_RELAXED) != before)
        return -1;
    memcpy(name, words, sizeof words);
    return name->ss_family == AF_UNSPEC ? -1 : 0;
}

void ns_peer_set(int fd, const void *name, uint32_t length, int unspecified)
{
    struct ns_sockaddr place;
    uint8_t copy[NS_NAME_BYTES];

    if (fd < 0 || fd >= DESCRIPTORS)
        return;
    ns_sockaddr_read(name, length, unspecified, &place);
    ns_sockaddr_copy(name, length, place.family, copy);
    store(fd, copy);
}

void ns_peer_forget(int fd)
{
    static const uint8_t nobody[NS_NAME_BYTES];
    struct sockaddr_storage name;

    if (fd >= 0 && fd < DESCRIPTORS && load(fd, &name) == 0)
        store(fd, nobody);
}

int ns_peer_restore(const struct ns_map *map, int fd, void *name, uint32_t length)
{
    struct sockaddr_storage peer;
    struct sockaddr head;

    if (fd < 0 || fd >= DESCRIPTORS || load(fd, &peer) != 0 || !ns_route_is_door(map, name, length))
        return 0;
    memcpy(&head, name, sizeof head);
    if (head.sa_family != peer.ss_family)
        return 0;
    memcpy(name, &peer, length < NS_NAME_BYTES ? length : NS_NAME_BYTES);
    return 1;
}

#endif
