/* One byte for each descriptor, written atomically: no lock, no allocation. The byte of a closed descriptor stays until
 * the next bind, connect or accept of that number, which comes before its name is queried. Only a descriptor that was
 * copied or received has no such moment, and may show another spelling of its own address. */
#include "address_spelling.h"

#define DESCRIPTORS 4096
#define PEER_SHIFT 4
#define LOCAL_MASK 15u

static uint8_t spelling[DESCRIPTORS];

static uint8_t get(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS ? __atomic_load_n(&spelling[fd], __ATOMIC_RELAXED) : 0;
}

void ns_spelling_set(int fd, uint32_t local, uint32_t peer)
{
    uint8_t value = (uint8_t)(local | peer << PEER_SHIFT);

    if (fd >= 0 && fd < DESCRIPTORS && get(fd) != value)
        __atomic_store_n(&spelling[fd], value, __ATOMIC_RELAXED);
}

uint32_t ns_spelling_local(int fd)
{
    return get(fd) & LOCAL_MASK;
}

uint32_t ns_spelling_peer(int fd)
{
    return (uint32_t)get(fd) >> PEER_SHIFT;
}
