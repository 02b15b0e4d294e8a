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
    return int(status_field(thread, "Tgid"))


def status_field(pid: int, name: str) -> str:
    """A value of proc_pid_status(5), with the blanks around it."""
    prefix = f"{name}:"
    for line in read(f"/proc/{pid}/status").split("\n"):
        if line.startswith(prefix):
            return line[len(prefix) :]
    raise OSError(errno.ESRCH, os.strerror(errno.ESRCH))


def socket_inode(pid: int, descriptor: int) -> str | None:
    """The inode of the socket behind a descriptor; None if it is not a socket."""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return None
    return link[8:-1] if link.startswith("socket:[") else None


def usage_below(init: int) -> dict[str, object]:
    """The processes of a session, which are those below its PID 1, with their CPU time and resident memory. Memory that
    they share counts for each of them."""
    parents: dict[int, int] = {}
    figures: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = read(f"/proc/{name}/stat").rpartition(") ")[2].split(" ")
            except OSError:  # it has ended
                continue
            parents[int(name)] = int(fields[1])
            figures[int(name)] = sum(map(int, fields[11:15])), int(fields[21])  # those of ended children too
    inside = [pid for pid in figures if _is_below(pid, init, parents)]
    ticks = sum(figures[pid][0] for pid in (init, *inside) if pid in figures)
    return {
        "processes": len(inside),
        "cpu_seconds": ticks / os.sysconf("SC_CLK_TCK"),
        "memory_bytes": sum(figures[pid][1] for pid in inside) * os.sysconf("SC_PAGE_SIZE"),
    }


def _is_below(pid: int, init: int, parents: dict[int, int]) -> bool:
    seen = 0
    while (pid := parents.get(pid, 0)) and pid != init and seen < len(parents):
        seen += 1
    return pid == init and init > 0
