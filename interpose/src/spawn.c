/* exec and posix_spawn: a program that clears or changes its environment stays injected, and so do its children.
 * Nothing is allocated and only the stack is written, so a child of vfork(2) may run this.
 *
 * An environment that already has both variables is passed on unchanged. So is one beyond the bounds below: its program
 * then runs without the library, and the kernel refuses what the library would have rewritten (INV-7). */
#include "shell_bridge.h"
#include "injection.h"
#include "hook.h"
#include "readable_memory.h"
#include "exec_target.h"

#include <alloca.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MAX_VARIABLES 16384
#define MAX_PRELOAD 16384

#ifdef __APPLE__
extern char ***_NSGetEnviron(void); /* <crt_externs.h>: a library has no environ there */
#define ENVIRONMENT (*_NSGetEnviron())
#else
#define ENVIRONMENT environ
#endif

/* One of the calls below, for any environment. */
struct call {
    int (*make)(const struct call *call, char *const *environment);
    const char *path;
    char *const *arguments;
    int fd;
    int flags;
    pid_t *pid;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
};

static int make_posix_spawnp(const struct call *call, char *const *environment)
{
    return REAL(posix_spawnp)(call->pid, call->path, call->actions, call->attributes, call->arguments, environment);
}

static int make_execve(const struct call *call, char *const *environment)
{
    return REAL(execve)(call->path, call->arguments, environment);
}

#ifdef NS_BRIDGE
/* posix_spawnp looks up a name without a slash and then calls posix_spawn, where it is a path. */
static int names_a_file(const struct call *call)
{
    return ns_readable(call->path, 1) && (call->make != make_posix_spawnp || strchr(call->path, '/') != NULL);
}

static int is_too_long(const struct call *call, int result)
{
    return call->make == make_execve ? errno == E2BIG : result == E2BIG;
}

/* A program that runs without the library passes it on, if its arguments allow that; the additions may be too large. */
static int start_bare(const struct call *call, char *const *environment, const struct ns_injection *injection)
{
    struct ns_bridge bridge = {injection, environment, call->actions != NULL, 0, 0};
    struct call bridged = *call;
    char **room;
    int result;

    if (ns_readable(call->arguments, sizeof *call->arguments) &&
        ns_bridge_measure(&bridge, call->path, call->arguments)) {
        room = alloca(bridge.pointers * sizeof *room);
        bridged.arguments = room;
        bridged.path = ns_bridge_build(&bridge, call->path, call->arguments, room, alloca(bridge.bytes));
        result = bridged.path != NULL ? call->make(&bridged, environment) : 0;
        if (bridged.path != NULL && !is_too_long(call, result))
            return result;
    }
    return call->make(call, environment);
}

static int start_without(const struct call *call, char *const *environment, struct ns_shape shape,
                         const struct ns_injection *injection)
{
    char **room;

    if (shape.preload < 0 || shape.count > MAX_VARIABLES)
        return start_bare(call, environment, injection);
    room = alloca(shape.count * sizeof *room);
    ns_environment_drop(environment, shape, room);
    return start_bare(call, room, injection);
}
#endif

static int stay_injected(const struct call *call, char *const *environment)
{
    const struct ns_injection *injection = ns_injection();
    struct ns_shape shape;
    char **room;

    if (injection == NULL || injection->preload[0] == '\0')
        return call->make(call, environment);
    if (environment != NULL && !ns_readable(environment, sizeof *environment))
        return call->make(call, environment);
    shape = ns_environment_shape(injection, environment);
#ifdef NS_BRIDGE
    if (names_a_file(call) && !ns_target_file_takes(call->path))
        return start_without(call, environment, shape, injection);
#endif
    if (shape.complete || shape.count > MAX_VARIABLES || shape.joined > MAX_PRELOAD)
        return call->make(call, environment);
    room = alloca((shape.count + 3) * sizeof *room);
    ns_environment_complete(injection, environment, shape, room, shape.joined > 0 ? alloca(shape.joined) : NULL);
    return call->make(call, room);
}

HOOK(int, execve, const char *path, char *const arguments[], char *const environment[])
{
    struct call call = {.make = make_execve, .path = path, .arguments = arguments};

    return stay_injected(&call, environment);
}

HOOK(int, execv, const char *path, char *const arguments[])
{
    return ns_execve(path, arguments, ENVIRONMENT);
}

/* The arguments are on the caller's stack already, so the array is no larger than they are. */
#define COUNT_ARGUMENTS(count, list, first)                                                                            \
    do {                                                                                                               \
        va_start(list, first);                                                                                         \
        for (count = (first) != NULL; count != 0 && va_arg(list, char *) != NULL && count < INT_MAX; count++)          \
            continue;                                                                                                  \
        va_end(list);                                                                                                  \
    } while (0)

/* Leaves the list open: execle's environment comes after the NULL. */
#define COPY_ARGUMENTS(array, count, list, first)                                                                      \
    do {                                                                                                               \
        va_start(list, first);                                                                                         \
        (array)[0] = (char *)(uintptr_t)(first);                                                                       \
        for (size_t copied = 1; copied <= (count); copied++)                                                           \
            (array)[copied] = va_arg(list, char *);                                                                    \
    } while (0)

HOOK(int, execl, const char *path, const char *first, ...)
{
    va_list list;
    size_t count;
    char **arguments;

    COUNT_ARGUMENTS(count, list, first);
    arguments = alloca((count + 1) * sizeof *arguments);
    COPY_ARGUMENTS(arguments, count, list, first);
    va_end(list);
    return ns_execve(path, arguments, ENVIRONMENT);
}

HOOK(int, execle, const char *path, const char *first, ...)
{
    va_list list;
    size_t count;
    char **arguments;
    char *const *environment;

    COUNT_ARGUMENTS(count, list, first);
    arguments = alloca((count + 1) * sizeof *arguments);
    COPY_ARGUMENTS(arguments, count, list, first);
    environment = va_arg(list, char *const *);
    va_end(list);
    return ns_execve(path, arguments, environment);
}

static int make_posix_spawn(const struct call *call, char *const *environment)
{
    return REAL(posix_spawn)(call->pid, call->path, call->actions, call->attributes, call->arguments, environment);
}

HOOK(int, posix_spawn, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    struct call call = {make_posix_spawn, path, arguments, 0, 0, pid, actions, attributes};

    return stay_injected(&call, environment);
}

HOOK(int, posix_spawnp, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    struct call call = {make_posix_spawnp, path, arguments, 0, 0, pid, actions, attributes};

    return stay_injected(&call, environment);
}

/* macOS: execvp and execlp end in the C library's own call of execve, which dyld redirects like any other. Tests that
 * define NS_BRIDGE provide their own. */
#ifndef NS_BRIDGE
static int make_execvpe(const struct call *call, char *const *environment)
{
    return REAL(execvpe)(call->path, call->arguments, environment);
}

HOOK(int, execvpe, const char *file, char *const arguments[], char *const environment[])
{
    struct call call = {.make = make_execvpe, .path = file, .arguments = arguments};

    return stay_injected(&call, environment);
}

HOOK(int, execvp, const char *file, char *const arguments[])
{
    return ns_execvpe(file, arguments, ENVIRONMENT);
}

HOOK(int, execlp, const char *file, const char *first, ...)
{
    va_list list;
    size_t count;
    char **arguments;

    COUNT_ARGUMENTS(count, list, first);
    arguments = alloca((count + 1) * sizeof *arguments);
    COPY_ARGUMENTS(arguments, count, list, first);
    va_end(list);
    return ns_execvpe(file, arguments, ENVIRONMENT);
}

static int make_fexecve(const struct call *call, char *const *environment)
{
    return REAL(fexecve)(call->fd, call->arguments, environment);
}

HOOK(int, fexecve, int fd, char *const arguments[], char *const environment[])
{
    struct call call = {.make = make_fexecve, .fd = fd, .arguments = arguments};

    return stay_injected(&call, environment);
}

static int make_execveat(const struct call *call, char *const *environment)
{
    return REAL(execveat)(call->fd, call->path, call->arguments, environment, call->flags);
}

HOOK(int, execveat, int fd, const char *path, char *const arguments[], char *const environment[], int flags)
{
    struct call call = {.make = make_execveat, .fd = fd, .path = path, .arguments = arguments, .flags = flags};

    return stay_injected(&call, environment);
}
#endif
