"""Finds the program behind a connection from outside, with the session's socket table.

/proc/<PID 1>/net/tcp, the table of PID 1's network namespace, gives the inode of the client's socket. The process of
the session that holds this inode is the client. This is best effort: the result goes into the log and decides nothing,
since a process may pass its socket on. A time budget keeps many new connections from stalling the open ones. If nothing
is found, the record has no program.
"""

from __future__ import annotations

import os

from netsandbox.backends.linux import procfs
from netsandbox.backends.linux.socket_table import MAPPED, find_inode, table_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARE, BURST = 0.01, 0.02  # the share of our time that this may use, and the seconds that may accumulate
MAX_PROCESSES = 512


class Attribution:
    """One per session; *init* is the pid of its PID 1 on the host. *is_bounded*: it keeps to its share of our time."""

    def __init__(self, init: int, clock: Callable[[], float], *, is_bounded: bool = True) -> None:
        self._init = init
        self._is_bounded = is_bounded
        self._clock = clock
        self._left = BURST
        self._counted = clock()

    def __call__(self, source: tuple[str, int], protocol: str = "tcp") -> tuple[int, str] | None:
        """The pid and the program of the client *source*; None if unknown, or if the search costs too much."""
        began = self._clock()
        self._left = min(BURST, self._left + (began - self._counted) * SHARE)
        self._counted = began
        if self._left <= 0 and self._is_bounded:
            return None
        try:
            inode = self._inode(protocol, *source[:2])
            pid = self._holder(inode) if inode is not None else None
            return (pid, os.readlink(f"/proc/{pid}/exe")) if pid is not None else None
        except OSError:  # it has ended
            return None
        finally:
            self._left -= self._clock() - began

    def _inode(self, protocol: str, address: str, port: int) -> str | None:
        local, table = table_address(address, port), f"/proc/{self._init}/net/{protocol}"
        if ":" in address:
            return find_inode(procfs.read(f"{table}6"), local)
        found = find_inode(procfs.read(table), local)
        return found or find_inode(procfs.read(f"{table}6"), MAPPED + local)

    def _holder(self, inode: str) -> int | None:
        for pid in self._processes():
            try:
                descriptors = os.listdir(f"/proc/{pid}/fd")
            except OSError:  # it has ended
                continue
            if any(procfs.socket_inode(pid, descriptor) == inode for descriptor in descriptors):
                return pid
        return None

    def _processes(self) -> Iterator[int]:
        """Every process of the session, parents first."""
        waiting = [self._init]
        for _ in range(MAX_PROCESSES):
            if not waiting:
                return
            try:
                found = procfs.children(waiting.pop(0))
            except OSError:  # it has ended
                continue
            yield from found
            waiting += found
