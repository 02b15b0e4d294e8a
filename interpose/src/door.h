/* How this library speaks with a door on localhost: within a deadline, and without a SIGPIPE when nobody is there. */
#ifndef NETSANDBOX_DOOR_H
#define NETSANDBOX_DOOR_H

#include <stddef.h>
#include <stdint.h>

/* So many milliseconds from now. */
int64_t ns_deadline(int milliseconds);
/* 0 once one of the events of poll(2) is there, -1 at the deadline. Signals do not end it. */
int ns_wait(int fd, short events, int64_t deadline);

/* A socket of the library's own, IPv4, not blocking, not inherited; the caller closes it in the same call. */
int ns_door_socket(int type);
/* Connects a socket that does not block, and waits for that: 0, or -1 with the errno. */
int ns_door_reach(int fd, const void *name, uint32_t length, int64_t deadline);
/* All of the data, or -1. A socket of the program's own is made quiet before. */
int ns_door_tell(int fd, const void *data, size_t size, int64_t deadline);

/* No SIGPIPE from this socket, until its own setting is given back. Linux has a flag of send(2) for that instead. */
#ifdef __APPLE__
int ns_quiet(int fd);
void ns_loud(int fd, int before);
#else
static inline int ns_quiet(int fd)
{
    (void)fd;
    return 0;
}
static inline void ns_loud(int fd, int before)
{
    (void)fd, (void)before;
}
#endif

#endif
