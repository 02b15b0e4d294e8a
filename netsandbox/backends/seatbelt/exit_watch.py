"""A descriptor that can be read once a process has ended, for a loop that watches descriptors."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class ExitNotice(Protocol):
        def fileno(self) -> int: ...
        def close(self) -> None: ...


FILTER_PROCESS, ADD, ONCE, AT_EXIT = -5, 0x0001, 0x0010, 0x80000000  # EVFILT_PROC, EV_ADD, EV_ONESHOT, NOTE_EXIT


class KqueueExit:
    """A kqueue of its own: it can be watched by another. The process must not have been waited for."""

    def __init__(self, pid: int) -> None:
        module: Any = select  # the names are a Mac's
        self._queue = module.kqueue()
        try:
            self._queue.control([module.kevent(pid, FILTER_PROCESS, ADD | ONCE, AT_EXIT)], 0, 0)
        except ProcessLookupError:  # it has ended already: an event that is always there says so
            self._reader, writer = os.pipe()
            os.close(writer)
            self._queue.close()
        else:
            self._reader = -1
        self._open = True

    def fileno(self) -> int:
        return self._reader if self._reader >= 0 else int(self._queue.fileno())

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._reader >= 0:
            os.close(self._reader)
        else:
            self._queue.close()
