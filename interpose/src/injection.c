/* Stores the injection, and puts it back into an environment, where the user's entries follow ours. The first caller
 * fills the record in. A signal handler that interrupts it finds the record incomplete and does without it, so that
 * nothing ever waits. */
#include "injection.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { EMPTY, FILLING, FILLED, ABSENT };

static struct ns_injection remembered;
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

/* This library's entry in a list that is separated by colons or, as in ld.so(8), blanks. */
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

    if (map == NULL || put(remembered.map, sizeof remembered.map, NS_PORT_MAP, map, strlen(map)) != 0)
        return ABSENT;
    if (entry != NULL && put(remembered.preload, sizeof remembered.preload, NS_PRELOAD, entry, length) != 0)
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
    return expected == FILLED ? &remembered : NULL;
}

static int is_named(const char *variable, const char *name)
{
    size_t length = strlen(name);

    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

static size_t joined_size(const struct ns_injection *injection, const char *variable)
{
    if (strstr(variable, injection->preload + strlen(NS_PRELOAD "=")) != NULL)
        return 0;
    return strlen(injection->preload) + 1 + strlen(variable + strlen(NS_PRELOAD "=")) + 1;
}

struct ns_shape ns_environment_shape(const struct ns_injection *injection, char *const *environment)
{
    struct ns_shape shape = {0, -1, -1, 0, 0};

    for (; environment != NULL && environment[shape.count] != NULL; shape.count++) {
        if (shape.preload < 0 && is_named(environment[shape.count], NS_PRELOAD))
            shape.preload = (ptrdiff_t)shape.count;
        if (shape.map < 0 && is_named(environment[shape.count], NS_PORT_MAP))
            shape.map = (ptrdiff_t)shape.count;
    }
    if (shape.preload >= 0)
        shape.joined = joined_size(injection, environment[shape.preload]);
    shape.complete = shape.preload >= 0 && shape.joined == 0 && shape.map >= 0 &&
                     strcmp(environment[shape.map], injection->map) == 0;
    return shape;
}

static void join(const struct ns_injection *injection, const char *variable, char *joined)
{
    size_t ours = strlen(injection->preload);
    const char *theirs = variable + strlen(NS_PRELOAD "=");

    memcpy(joined, injection->preload, ours);
    joined[ours] = ':';
    memcpy(joined + ours + 1, theirs, strlen(theirs) + 1);
}

void ns_environment_complete(const struct ns_injection *injection, char *const *environment, struct ns_shape shape,
                             char **room, char *joined)
{
    if (shape.count > 0)
        memcpy(room, environment, shape.count * sizeof *room);
    if (shape.preload < 0) {
        room[shape.count++] = (char *)(uintptr_t)injection->preload;
    } else if (shape.joined > 0) {
        join(injection, environment[shape.preload], joined);
        room[shape.preload] = joined;
    }
    if (shape.map < 0)
        shape.map = (ptrdiff_t)shape.count++;
    room[shape.map] = (char *)(uintptr_t)injection->map;
    room[shape.count] = NULL;
}

void ns_environment_drop(char *const *environment, struct ns_shape shape, char **room)
{
    size_t before = (size_t)shape.preload;

    memcpy(room, environment, before * sizeof *room);
    memcpy(room + before, environment + before + 1, (shape.count - before) * sizeof *room); /* with the final NULL */
}
