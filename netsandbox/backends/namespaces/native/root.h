/* The session's own root: a tmpfs that shows the paths of the plan and nothing else of the host.
 *
 * Between root_begin and root_end the host's root is at /.host, where the sources of the plan's paths lie. No symbolic
 * link is followed in a source or a target: the supervisor resolved them, so a link on the way is newer than that. */
#ifndef NETSANDBOX_ROOT_H
#define NETSANDBOX_ROOT_H

#include <sys/types.h>

enum show_flag {
    SHOW_READ_ONLY = 2, /* with all submounts */
    SHOW_OPTIONAL = 4,  /* a source that is gone is no error */
    SHOW_MAKE = 8,      /* make the mount point, and the folders above it, where they are missing */
};

void root_begin(void);
void root_folder(const char *path, mode_t mode);
void root_link(const char *target, const char *path);
void root_show(unsigned int flags, const char *source, const char *target);

#define OVERLAY "mounting the overlay" /* in ADVICE of diagnosis.py */

/* An overlay of the folder *lower*, which the *options* call `.`, so that no link can lead the mount elsewhere. 0 with
 * errno if the kernel refuses. */
int root_overlay(const char *lower, const char *options, const char *target);

/* The same with changes in *upper*, which is shown alone where the kernel refuses. */
void root_cache(const char *lower, const char *options, const char *upper, const char *target);

/* Mounts a symbolic link to *target* over the file or link *path*: programs that resolve links before they replace a
 * file write to *target*, and the link can be neither moved nor removed. Where the kernel refuses to mount a link,
 * *source* is shown read-only at *path*. */
void root_cover(const char *target, const char *source, const char *path);
void root_end(void);

/* A rename on the host over a covered file detaches the cover. A descriptor that is readable when that may have
 * happened; COVERS_NONE without covers; COVERS_POLLED where the kernel has no inotify instance left. */
enum { COVERS_NONE = -1, COVERS_POLLED = -2, MAX_COVERS = 1024 };
int covers_watch(void);

/* Puts covers back. A command may have been faster, and the end of the session looks at the host's files. */
void covers_restore(int watch);

/* Opens *path* without following a link; ends the process if that fails. */
int open_place(const char *path);

#endif
