"""The event loop: level-triggered epoll and a list of timers, one thread, no imports beyond C modules.

asyncio costs 49 ms to import and half the tunnels per second (docs/performance.md), hence these hundred lines. Every
component types against `Loop`. A handler that raises is our own bug: its descriptor is watched no longer, so that
nothing more passes there and the loop cannot spin on it, and `on_error` gets the exception (INV-1).
"""

from __future__ import annotations

import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Poll(Protocol):
        """The part of `select.epoll` that the loop uses; other systems imitate it."""

        def register(self, fd: int, eventmask: int = ..., /) -> None: ...
        def modify(self, fd: int, eventmask: int, /) -> None: ...
        def unregister(self, fd: int, /) -> None: ...
        def poll(self, timeout: float | None = ..., maxevents: int = ..., /) -> list[tuple[int, int]]: ...
        def close(self) -> None: ...


IN, OUT, HUP = 1, 4, 16  # EPOLLIN, EPOLLOUT, EPOLLHUP; the loops of other systems translate to these numbers


class Timer:
    """A scheduled call that can be cancelled."""

    __slots__ = ("callback", "due", "order")

    def __init__(self, due: float, order: int, callback: Callable[[], None]) -> None:
        self.due = due
        self.order = order
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Timer) -> bool:
        return (self.due, self.order) < (other.due, other.order)


class Loop:
    """Watches descriptors and keeps time until `stop` is called."""

    def __init__(self, on_error: Callable[[BaseException], None] | None = None) -> None:
        self._epoll = self._open_poll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[Timer] = []
        self._order = 0
        self._running = False
        self._on_error = on_error
        self.now = time.monotonic

    def _open_poll(self) -> Poll:
        return select.epoll()

    def watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        self._epoll.register(fd, events)
        self._handlers[fd] = handler

    def rewatch(self, fd: int, events: int) -> None:
        self._epoll.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            try:
                self._epoll.unregister(fd)
            except OSError:  # already closed: the kernel forgot it first
                pass

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        self._order += 1
        timer = Timer(self.now() + seconds, self._order, callback)
        self._insert(timer)
        return timer

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        self._running = True
        poll, handlers = self._epoll.poll, self._handlers
        while self._running:
            for fd, events in poll(self._time_to_wait(), 256):
                handler = handlers.get(fd)
                if handler is None:  # closed by an earlier handler of this round
                    continue
                try:
                    handler(events)
                except Exception as error:
                    self.unwatch(fd)
                    self._failed(error)
                if not self._running:
                    return
            if self._timers:
                self._fire()

    def close(self) -> None:
        self._handlers.clear()
        self._timers.clear()
        self._epoll.close()

    def _insert(self, timer: Timer) -> None:
        """Binary insertion; the next timer due stands last. (Importing `_heapq` costs each launch 0.3 ms.)"""
        timers, low, high = self._timers, 0, len(self._timers)
        while low < high:
            middle = (low + high) // 2
            if timer < timers[middle]:
                low = middle + 1
            else:
                high = middle
        timers.insert(low, timer)

    def _time_to_wait(self) -> float:
        """Seconds until the next timer, or -1 for ever."""
        while self._timers and self._timers[-1].callback is None:
            self._timers.pop()
        return max(0.0, self._timers[-1].due - self.now()) if self._timers else -1

    def _fire(self) -> None:
        now = self.now()
        while self._timers and self._timers[-1].due <= now:
            callback = self._timers.pop().callback
            if callback is not None:
                try:
                    callback()
                except Exception as error:
                    self._failed(error)

    def _failed(self, error: BaseException) -> None:
        if self._on_error is None:
            raise error
        self._on_error(error)
