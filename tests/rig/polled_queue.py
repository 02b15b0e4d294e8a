"""kqueue(2) made of poll(2), for the loop of a Mac where there is none."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from typing import Any

from netsandbox.runtime.kqueue_loop import AT_END, DELETE, READ, WRITE, KqueuePoll
from netsandbox.runtime.loop import Loop


class Event:
    def __init__(self, ident: int, filter: int, flags: int = 0, fflags: int = 0) -> None:
        self.ident = ident
        self.filter = filter
        self.flags = flags
        self.fflags = fflags


class PolledQueue:
    """kqueue(2) as far as the loop uses it: a filter for each direction, reported apart, level-triggered."""

    def __init__(self) -> None:
        self.filters: set[tuple[int, int]] = set()
        self.closed = False

    def control(self, told: Iterable[Any] | None, most: int, timeout: float | None = None, /) -> list[Any]:
        for change in told or ():
            key = (change.ident, change.filter)
            if change.flags & DELETE:
                if key not in self.filters:
                    raise FileNotFoundError
                self.filters.discard(key)
            else:
                os.fstat(change.ident)
                self.filters.add(key)
        return self._wait(timeout)[:most] if most else []

    def _wait(self, timeout: float | None) -> list[Event]:
        poll = select.poll()
        for fd in {fd for fd, _ in self.filters}:
            masks = {READ: select.POLLIN, WRITE: select.POLLOUT}
            poll.register(fd, sum(masks[name] for ident, name in self.filters if ident == fd))
        found = []
        for fd, mask in poll.poll(None if timeout is None else timeout * 1000):
            gone = AT_END if mask & select.POLLHUP else 0
            if (fd, READ) in self.filters and mask & (select.POLLIN | select.POLLHUP | select.POLLERR):
                found.append(Event(fd, READ, gone))
            if (fd, WRITE) in self.filters and mask & (select.POLLOUT | select.POLLHUP | select.POLLERR):
                found.append(Event(fd, WRITE, gone))
        return found

    def close(self) -> None:
        self.closed = True


class PolledLoop(Loop):
    def _open_poll(self) -> Any:
        return KqueuePoll(PolledQueue(), Event)
