"""Reads /proc for a process of the session, by its pid on the host. OSError: the process is gone.

A process chooses its own name, which may hold any byte but the line feed. So only a line feed ends a line, and invalid
UTF-8 is no error.
"""

from __future__ import annotations

import errno
import os


def read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read()


def process_of(thread: int) -> int:
    """The process of *thread*."""
    for line in read(f"/proc/{thread}/status").split("\n"):
        if line.startswith("Tgid:"):
            return int(line[5:])
    raise OSError(errno.ESRCH, os.strerror(errno.ESRCH))


def socket_inode(pid: int, descriptor: int) -> str | None:
    """The inode of the socket behind a descriptor; None if it is not a socket."""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return None
    return link[8:-1] if link.startswith("socket:[") else None
