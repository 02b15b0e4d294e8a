/* Exchanges data with a door on localhost: within a deadline, and without SIGPIPE if the door is gone. */
#ifndef NETSANDBOX_DOOR_H
#define NETSANDBOX_DOOR_H

#include <stddef.h>
#include <stdint.h>

/* The time in that many milliseconds. */
int64_t ns_deadline(int milliseconds);
/* 0 once one of the poll(2) events is ready, -1 at the deadline. Signals do not end the wait. */
int ns_wait(int fd, short events, int64_t deadline);

/* A socket of the library: IPv4, non-blocking, not inherited. The caller closes it in the same call. */
int ns_door_socket(int type);
/* Connects a non-blocking socket and waits for the result: 0, or -1 with the errno. */
int ns_door_reach(int fd, const void *name, uint32_t length, int64_t deadline);
/* Sends all of the data, or returns -1. A socket of the program must be made quiet first. */
int ns_door_tell(int fd, const void *data, size_t size, int64_t deadline);

/* Suppresses SIGPIPE for this socket until its own setting is restored. Linux has a flag of send(2) instead. */
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
