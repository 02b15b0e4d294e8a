"""What /proc says about a process of the session, as this process sees it. OSError: it is gone.

A process gives itself its name, any bytes but the line feed: only that ends a line, and what is no UTF-8 is no error.
"""

from __future__ import annotations

import errno
import os


def read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read()


def process_of(thread: int) -> int:
    """The process that *thread* belongs to."""
    for line in read(f"/proc/{thread}/status").split("\n"):
        if line.startswith("Tgid:"):
            return int(line[5:])
    raise OSError(errno.ESRCH, os.strerror(errno.ESRCH))


def socket_inode(pid: int, descriptor: int) -> str | None:
    """The inode of the socket behind a descriptor; None when it is no socket."""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return None
    return link[8:-1] if link.startswith("socket:[") else None
