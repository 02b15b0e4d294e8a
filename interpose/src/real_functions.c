/* Looks up the real functions: in the constructor, or earlier if another library's constructor calls a hook first.
 * Concurrent callers find the same addresses, so none waits. A function that this C library lacks returns ENOSYS. */
#include "real_functions.h"

#ifndef __APPLE__

#include <dlfcn.h>
#include <errno.h>

static struct ns_real table;
static int ready;

static int missing(void)
{
    errno = ENOSYS;
    return -1;
}

static void look_up(void **field, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    int (*instead)(void) = missing;

    if (found == NULL)
        __builtin_memcpy(&found, &instead, sizeof found);
    __atomic_store_n(field, found, __ATOMIC_RELAXED);
}

void ns_real_start(void)
{
    int saved = errno;

#define FIND(result, name, parameters) look_up((void **)&table.name, #name);
    NS_REAL_CALLS(FIND)
    NS_REAL_LOOKUPS(FIND)
#undef FIND
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    errno = saved;
}

const struct ns_real *ns_real(void)
{
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        ns_real_start();
    return &table;
}

#endif
