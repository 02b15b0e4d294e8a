/* Puts the injection back (environment.h). Entries of the user's own stay, behind ours. */
#include "environment.h"

#include <stdint.h>
#include <string.h>

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
