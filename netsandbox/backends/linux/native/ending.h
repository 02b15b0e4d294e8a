/* The end of a session, which PID 1 or the broker carries out: every process that is left gets SIGTERM, and some time to
 * write what it holds; then it is killed. It begins with the end of the first command, or when the user stops the session. */
#ifndef NETSANDBOX_ENDING_H
#define NETSANDBOX_ENDING_H

#include <stdint.h>

/* The clock of this process, in milliseconds. */
int64_t now(void);

/* Asks all processes by *signal_all*, once. One that is suspended handles no signal, so it is continued. */
void ask_to_end(void (*signal_all)(int number));

/* From now on nobody is asked or waited for. */
void end_at_once(void);

/* The first command has ended. */
void command_ended(int status);
int has_command_ended(void);

/* Whether the session is over, as far as this process decides it: *none_left*, or there was time enough. Then *status* is
 * that of the first command. */
int is_over(int none_left, int *status);

/* Milliseconds until is_over may change without a signal, and at most *longest*; -1 is for ever. */
int until_over(int longest);

#endif
