/* Messages to the supervisor, over RELAY (traps.h). */
#ifndef NETSANDBOX_REPORTS_H
#define NETSANDBOX_REPORTS_H

#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/uio.h>

/* Whether it was sent; with MSG_DONTWAIT it may not fit. Any thread may send. */
int to_supervisor(struct iovec *parts, size_t count, int flags);

/* A call for the supervisor to answer. */
void pass_on(const struct seccomp_notif *call);

/* A refused call, or for `learn` a change that is not refused. Nothing is sent if the caller is gone, or if the same was
 * sent often enough. */
void report(const struct seccomp_notif *call, char why, char does, const char *path);

/* A refused call that waits for the user. 0: the caller is gone. */
int pass_question(const struct seccomp_notif *call, char why, char does, const char *path);

/* The session makes *path*: what it missed there, or below it, a moment ago, was no refusal. Programs open a file first
 * and make it if it is missing, or make the last folder of a path first. */
void report_made(const char *path);

/* A call that could not be looked at. */
void count_unreported(void);

/* How many reports did not fit. Waits for the supervisor if it is behind: a flood becomes slower, and none of it is
 * missing in the log's count. */
void report_unreported(void);

#endif
