"""Finds the program behind a connection from outside, with the session's socket table.

/proc/<PID 1>/net/tcp, the table of PID 1's network namespace, gives the inode of the client's socket. The process of
the session that holds this inode is the client. This is best effort: the result goes into the log and decides nothing,
since a process may pass its socket on. A time budget keeps many new connections from stalling the open ones. If nothing
is found, the record has no program.
"""

from __future__ import annotations

import os

from netsandbox.backends.namespaces import procfs
from netsandbox.backends.namespaces.socket_table import MAPPED, find_inode, table_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARE, BURST = 0.01, 0.02  # the share of our time that this may use, and the seconds that may accumulate
MAX_PROCESSES = 512


class Attribution:
    """One per session; *init* is the pid of its PID 1 on the host."""

    def __init__(self, init: int, clock: Callable[[], float]) -> None:
        self._init = init
        self._clock = clock
        self._left = BURST
        self._counted = clock()

    def __call__(self, source: tuple[str, int]) -> tuple[int, str] | None:
        """The pid and the program of the client *source*; None if unknown, or if the search costs too much."""
        began = self._clock()
        self._left = min(BURST, self._left + (began - self._counted) * SHARE)
        self._counted = began
        if self._left <= 0:
            return None
        try:
            inode = self._inode(*source)
            pid = self._holder(f"socket:[{inode}]") if inode is not None else None
            return (pid, os.readlink(f"/proc/{pid}/exe")) if pid is not None else None
        except OSError:  # it has ended
            return None
        finally:
            self._left -= self._clock() - began

    def _inode(self, address: str, port: int) -> str | None:
        local = table_address(address, port)
        if ":" in address:
            return find_inode(procfs.read(f"/proc/{self._init}/net/tcp6"), local)
        found = find_inode(procfs.read(f"/proc/{self._init}/net/tcp"), local)
        return found or find_inode(procfs.read(f"/proc/{self._init}/net/tcp6"), MAPPED + local)

    def _holder(self, link: str) -> int | None:
        for pid in self._processes():
            folder = f"/proc/{pid}/fd"
            try:
                for descriptor in os.listdir(folder):
                    if os.readlink(f"{folder}/{descriptor}") == link:
                        return pid
            except OSError:  # the process or the descriptor is gone
                continue
        return None

    def _processes(self) -> Iterator[int]:
        """Every process of the session, parents first."""
        waiting = [self._init]
        for _ in range(MAX_PROCESSES):
            if not waiting:
                return
            pid = waiting.pop(0)
            try:
                threads = os.listdir(f"/proc/{pid}/task")
                children = [procfs.read(f"/proc/{pid}/task/{thread}/children") for thread in threads]
            except OSError:
                continue
            found = [int(word) for text in children for word in text.split()]
            yield from found
            waiting += found
