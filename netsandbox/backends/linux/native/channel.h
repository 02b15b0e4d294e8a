/* The socket between the helper and the supervisor: SOCK_SEQPACKET, one record for each message.
 *
 * helper -> supervisor                         supervisor -> helper
 *   P <i32 pid>     init's pid, host view        the plan (first message), see plan.h
 *   D [descriptors] the doors are ready          G  go: start the command
 *   L [descriptors] seccomp listener, report     K <i32 signal>  for the command
 *   R [descriptor]  the spawner's (spawner.h); without one there is no spawner
 *                                                T <i32 unused>  ask every process to end (ending.h)
 *   N [descriptor]  a socket made inside         N <i32 family>  make one in the session's network: TCP, or sock_diag
 *   N <i32 errno>   or why there is none
 *   E <i32 errno> <text>  set-up failed at step <text>; nothing was started
 *   S <i32 status>  the command ended (wait status)
 *
 * The report is a pipe that ends when the command is executed; an <i32 errno> before its end says why it could not be.
 */
#ifndef NETSANDBOX_CHANNEL_H
#define NETSANDBOX_CHANNEL_H

#include <stddef.h>
#include <stdnoreturn.h>

#define CHANNEL 3      /* the descriptor the supervisor gives us */
#define MAX_DOORS 64

void channel_number(char kind, int number);

/* One message with descriptors, of which there may be none. 0, or -1 with errno. */
int send_descriptors(int socket, const void *data, size_t length, const int *descriptors, size_t count);

/* Over the channel or another socket. 0, or -1 with errno: the kernel counts the descriptors in flight over all processes
 * of a user. */
int channel_descriptors(int socket, char kind, const int *descriptors, size_t count);
void channel_await_go(void);

/* The supervisor's next request, K, N or T with its number; ends the process if the supervisor is gone. */
char channel_wish(int *number);

/* Reports the failed step with errno to the supervisor, and ends the process. */
noreturn void fail(const char *step);

#endif
