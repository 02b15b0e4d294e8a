"""Which program wanted this connection? Found from outside, by the session's own socket table.

The client's address is looked up in /proc/<PID 1>/net/tcp (the table is that of PID 1's network namespace), which names
the socket's inode; the process of the session that holds it is the one. Best effort: the answer goes into the log and
decides nothing, a process may pass its socket on, and a budget of time keeps a storm of connections from stalling the
flows that are open. What is not found is left out of the record.
"""

from __future__ import annotations

import os

from netsandbox.backends.namespaces import procfs
from netsandbox.backends.namespaces.socket_table import MAPPED, find_inode, table_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARE, BURST = 0.01, 0.02  # of our time that may go into this, and seconds of it that may be saved up
MAX_PROCESSES = 512


class Attribution:
    """One per session; *init* is the pid of its PID 1 as this process sees it."""

    def __init__(self, init: int, clock: Callable[[], float]) -> None:
        self._init = init
        self._clock = clock
        self._left = BURST
        self._counted = clock()

    def __call__(self, source: tuple[str, int]) -> tuple[int, str] | None:
        """The pid and the program behind the client *source*; None where that cannot be told, or not cheaply."""
        began = self._clock()
        self._left = min(BURST, self._left + (began - self._counted) * SHARE)
        self._counted = began
        if self._left <= 0:
            return None
        try:
            inode = self._inode(*source)
            pid = self._holder(f"socket:[{inode}]") if inode is not None else None
            return (pid, os.readlink(f"/proc/{pid}/exe")) if pid is not None else None
        except OSError:  # it ended meanwhile
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
            except OSError:  # that process, or that descriptor, is gone
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
