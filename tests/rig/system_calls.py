"""What probes in C that try system calls begin with, and what they print, read back."""

from __future__ import annotations

# Prints "name errno-name" or "name ok". Nothing here needs more of libc than printf.
PRELUDE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static void said(const char *name, const char *what) { printf("%s %s\n", name, what); fflush(stdout); }
static void tried(const char *name, long result)
{
    said(name, result >= 0 ? "ok" : strerrorname_np(errno) ? strerrorname_np(errno) : "?");
}
#define TRY(name, call) (errno = 0, tried(name, (long)(call)))
static long opened(const char *path, int flags) { int fd = open(path, flags); if (fd >= 0) close(fd); return fd; }
static long written(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY), kept;
    if (fd < 0) return -1;
    long result = write(fd, text, strlen(text));
    kept = errno; close(fd); errno = kept;
    return result;
}
"""


def lines(text: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines())
