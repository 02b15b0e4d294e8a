"""Ends a command when its supervisor is gone (INV-10), if netsandbox-apply with its own watcher is not used.

    python -I -S -E -B watcher.py PID

Descriptor 3 is a pipe that the supervisor holds: if it ends without a byte, the supervisor has died. Like
netsandbox/backends/seatbelt/native/watch.c, the watcher runs outside the profile, detached, and ignores the terminal's
signals.
"""

from __future__ import annotations

import _signal
import fcntl
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

LIFE = 3
PS = "/bin/ps"
TABLE = ("ps", "-A", "-o", "pid=", "-o", "ppid=")
MAX_DESCRIPTOR = 65536
MAX_ROUNDS = 64  # of searching for children: each finds one more generation


def main(words: list[str]) -> None:
    command = int(words[0])
    os.setsid()
    os.closerange(0, LIFE)
    os.closerange(LIFE + 1, MAX_DESCRIPTOR)
    if os.fork():
        os._exit(0)  # tells the parent's caller that the watcher runs
    if not os.read(LIFE, 1):  # a byte means that the command has ended and its pid may be reused
        end_family(command)
    os._exit(0)


def end_family(first: int) -> None:
    """Stop each process before searching for its children, so that none is made unseen; then kill them all."""
    family: set[int] = set()
    found = {first}
    for _ in range(MAX_ROUNDS):
        if not found:
            break
        for pid in found:
            _send(pid, _signal.SIGSTOP)
        family |= found
        found = children(_table(), family)
    for pid in family | found:
        _send(pid, _signal.SIGKILL)


def children(table: bytes, family: Collection[int]) -> set[int]:
    """The processes in *table* (lines of pid and parent) whose parent is in *family* and which are not in it yet."""
    found = set()
    for line in table.splitlines():
        words = line.split()
        if len(words) == 2 and all(word.isdigit() for word in words):
            pid, parent = map(int, words)
            if parent in family and pid not in family and pid > 1:
                found.add(pid)
    return found


def _table() -> bytes:
    """The system's process list; empty if unavailable. The command itself is ended in any case."""
    reader, low = os.pipe()
    # A higher number: if the writer is already the standard output, macOS would close it at exec.
    writer = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, LIFE)
    os.close(low)
    data = b""
    try:
        actions = [(os.POSIX_SPAWN_DUP2, writer, 1)]
        pid = os.posix_spawn(PS, TABLE, {}, file_actions=actions)
        os.close(writer)
        writer = -1
        while piece := os.read(reader, 1 << 16):
            data += piece
        os.waitpid(pid, 0)
    except OSError:
        pass
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    return data


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:  # it has ended
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
