/* How a replacement takes the place of a C library function. On Linux it is exported under the function's name, and the
 * loader finds it first; on macOS dyld reads pairs of functions from a section of this library. The replacement has
 * another name in C, since headers declare the originals with compiler extensions. */
#ifndef NETSANDBOX_HOOK_H
#define NETSANDBOX_HOOK_H

#include "real_functions.h"

#ifdef __APPLE__
struct ns_pair {
    const void *replacement;
    const void *original;
};
#define HOOK(result, name, ...)                                                                                        \
    static result ns_##name(__VA_ARGS__);                                                                              \
    __attribute__((used, section("__DATA,__interpose"))) static const struct ns_pair ns_pair_##name = {                \
        (const void *)ns_##name, (const void *)name};                                                                  \
    static result ns_##name(__VA_ARGS__)
#else
#define HOOK(result, name, ...)                                                                                        \
    __attribute__((visibility("default"))) result ns_##name(__VA_ARGS__) __asm__(#name);                               \
    result ns_##name(__VA_ARGS__)
#endif

#endif
