/* The plan: what the supervisor wants set up, as a list of steps. The helper carries them out in order and knows
 * nothing of policy. A step is <u8 operation> <u32 length> <payload>, numbers in host order; strings end with NUL.
 *
 *   I  identity   u32 uid, u32 gid                       write the id maps of the new user namespace
 *   M  mount      u32 flags, source, target, type, data   flags below
 *   L  link       path                                   the symbolic link can no longer be removed or renamed
 *   W  writable   paths                                  everything becomes read-only but these, as they are now
 *   R  root       (nothing)                              an empty tmpfs becomes the root; the host's is at /.host
 *   S  folder     u32 mode, path                         make a folder, and those above it (root.h)
 *   Y  link       target, path                           make a symbolic link
 *   V  show       u32 flags, source, target              show a path of the host, flags in root.h
 *   C  cache      lower, options, upper, target          an overlay, or upper alone where overlays are refused
 *   U  overlay    u32 flags, lower, options, target      an overlay of a folder (root.h), flags below
 *   A  cover      target, source, path                   a link to target over a file, or source read-only
 *   E  end        (nothing)                              the host's root is detached, the session's is read-only
 *   K  netlink    u32 protocol, u32 acks, messages       send, and wait for every acknowledgement
 *   D  door       u32 family, type, port, loopback, backlog   make a socket; its options follow as O steps before it binds
 *   O  option     u32 level, u32 name, value             option of the door that the next B binds
 *   B  bind       (nothing)                              bind (and listen on) the door
 *   Z  limit      u32 resource, u64 value                 a resource limit of the command (process.h)
 *   H  handled    u32 rights                              rights that Landlock gives only where a P step does
 *   P  permit     u32 rights, paths                       at these paths and below; without paths at all but processes
 *   F  filter     struct sock_filter[]                   the seccomp filter for the command
 */
#ifndef NETSANDBOX_PLAN_H
#define NETSANDBOX_PLAN_H

#include <linux/filter.h>
#include <stddef.h>

#include "channel.h"

enum mount_flag {
    MOUNT_BIND = 1,      /* source onto target, submounts too */
    MOUNT_READ_ONLY = 2, /* then make target read-only, submounts too */
    MOUNT_OPTIONAL = 4,  /* a missing source or target is no error */
    MOUNT_ATTEMPT = 8,   /* no failure is an error */
};

struct outcome {
    int doors[MAX_DOORS];
    size_t door_count;
    struct sock_fprog filter;
};

/* Carries out every step; ends the process with a report if one fails. The filter points into the plan. */
void carry_out(const unsigned char *plan, size_t length, struct outcome *outcome);

#endif
