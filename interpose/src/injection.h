/* The two variables that bring this library into a process and tell it where the port map is. They are remembered when
 * the process starts, because programs change and clear their environment. */
#ifndef NETSANDBOX_INJECTION_H
#define NETSANDBOX_INJECTION_H

#ifdef __APPLE__
#define NS_PRELOAD "DYLD_INSERT_LIBRARIES"
#define NS_LIBRARY "libnetsandbox_interpose.dylib"
#else
#define NS_PRELOAD "LD_PRELOAD"
#define NS_LIBRARY "libnetsandbox_interpose.so"
#endif
#define NS_PORT_MAP "NETSANDBOX_PORT_MAP"

/* cdef */
struct ns_injection {
    char preload[1024]; /* LD_PRELOAD=/…/libnetsandbox_interpose.so, this library alone */
    char map[1024];     /* NETSANDBOX_PORT_MAP=/… */
};
/* end of cdef */

/* What was remembered, or NULL when there is nothing: a process into which the library came some other way. */
const struct ns_injection *ns_injection(void);

#endif
