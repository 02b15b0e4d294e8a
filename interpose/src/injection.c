/* Remembers the injection. The first caller fills the record in; a signal handler that interrupts it finds it unfinished
 * and does without, so that nobody ever waits. */
#include "injection.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { EMPTY, FILLING, FILLED, ABSENT };

static struct ns_injection injection;
static int state;

static int put(char *room, size_t size, const char *name, const char *value, size_t length)
{
    size_t head = strlen(name);

    if (length == 0 || head + 1 + length >= size)
        return -1;
    memcpy(room, name, head);
    room[head] = '=';
    memcpy(room + head + 1, value, length);
    room[head + 1 + length] = '\0';
    return 0;
}

/* This library's entry in a list that is separated by colons or, by ld.so(8), blanks. */
static const char *own_entry(const char *list, size_t *length)
{
    while (list != NULL && *list != '\0') {
        *length = strcspn(list, ": ");
        if (*length >= strlen(NS_LIBRARY) &&
            memcmp(list + *length - strlen(NS_LIBRARY), NS_LIBRARY, strlen(NS_LIBRARY)) == 0)
            return list;
        list += *length;
        list += strspn(list, ": ");
    }
    *length = 0;
    return NULL;
}

static int fill(void)
{
    const char *map = getenv(NS_PORT_MAP);
    size_t length;
    const char *entry = own_entry(getenv(NS_PRELOAD), &length);

    if (map == NULL || put(injection.map, sizeof injection.map, NS_PORT_MAP, map, strlen(map)) != 0)
        return ABSENT;
    if (entry != NULL && put(injection.preload, sizeof injection.preload, NS_PRELOAD, entry, length) != 0)
        return ABSENT;
    return FILLED;
}

const struct ns_injection *ns_injection(void)
{
    int expected = EMPTY;

    if (__atomic_compare_exchange_n(&state, &expected, FILLING, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        expected = fill();
        __atomic_store_n(&state, expected, __ATOMIC_RELEASE);
    }
    return expected == FILLED ? &injection : NULL;
}
