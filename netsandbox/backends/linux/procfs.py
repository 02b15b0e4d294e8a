"""Reads /proc for a process of the session, by its pid on the host. OSError: the process is gone.

A process chooses its own name, which may hold any byte but the line feed. So only a line feed ends a line, and invalid
UTF-8 is no error.
"""

from __future__ import annotations

import errno
import os

MAX_LINEAGE = 32
PAGE = 4096
_TICKS, _THREADS, _PAGES = slice(11, 15), 17, 21  # fields of proc_pid_stat(5) behind the process's name


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


def socket_inode(pid: int, descriptor: int | str) -> str | None:
    """The inode of the socket behind a descriptor; None if it is not a socket."""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return None
    return link[8:-1] if link.startswith("socket:[") else None


def usage_below(init: int, *ours: int) -> dict[str, object]:
    """The processes of a session, which are those below its first one without *ours*, with their CPU time and
    resident memory. Memory that they share counts for each of them. Other processes of the host are not looked at: `ps`
    may ask fifty sessions."""
    found, processes, ticks, pages = [init], 0, 0, 0
    for pid in found:  # children are appended meanwhile
        try:
            fields = _content(f"/proc/{pid}/stat").rpartition(b") ")[2].split(b" ")
            found += children(pid, is_single=fields[_THREADS] == b"1")
        except OSError:  # it has ended
            continue
        ticks += sum(map(int, fields[_TICKS]))  # those of ended children too
        if pid not in (init, *ours):
            processes += 1
            pages += int(fields[_PAGES])
    return {
        "processes": processes,
        "cpu_seconds": ticks / os.sysconf("SC_CLK_TCK"),
        "memory_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
    }


def children(pid: int, *, is_single: bool = False) -> list[int]:
    """Those of all its threads; none on a kernel that does not list them (CONFIG_PROC_CHILDREN)."""
    threads = (str(pid),) if is_single else os.listdir(f"/proc/{pid}/task")
    found: list[int] = []
    for thread in threads:
        try:
            found += map(int, _content(f"/proc/{pid}/task/{thread}/children").split())
        except OSError:  # this thread has ended
            continue
    return found


def named_children(pid: int, name: bytes) -> list[int]:
    """The children of a process that call themselves *name*."""
    try:
        return [child for child in children(pid) if _content(f"/proc/{child}/comm").strip() == name]
    except OSError:  # one has ended
        return []


def lineage(pid: int, init: int) -> list[int]:
    """*pid* and its parents below *init*, numbered as in the pid namespace of *init*."""
    level = len(status_field(init, "NSpid").split()) - 1
    found: list[int] = []
    while pid not in (0, init) and len(found) < MAX_LINEAGE:
        found.append(int(status_field(pid, "NSpid").split()[level]))
        pid = int(status_field(pid, "PPid"))
    return found


def _content(path: str) -> bytes:
    """In a fifth of the time of `read`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(descriptor, PAGE)]
        while parts[-1]:  # the kernel gives no more than a page at once, whatever is asked for
            parts.append(os.read(descriptor, PAGE))
        return b"".join(parts)
    finally:
        os.close(descriptor)
