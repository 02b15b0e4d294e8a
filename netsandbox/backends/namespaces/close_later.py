"""Closes copies of the command's sockets in a thread, and then answers the trapped call.

The copy is closed before the answer, so that a port is free as soon as the command closes its own socket. A thread
closes it, because close(2) of the last descriptor of a TCP connection may block for the SO_LINGER time that the command
sets; on the loop's thread it would block every door of the session. The queue is bounded; when it is `full`, the broker
refuses the next call without a check.
"""

from __future__ import annotations

import _queue
import _signal
import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Closeable(Protocol):
        def close(self) -> None: ...


MAX_WAITING = 64


class CloseLater:
    """The thread starts with the first copy and ends with `close`."""

    def __init__(self) -> None:
        self._copies: _queue.SimpleQueue[tuple[Closeable, Callable[[], object]] | None] = _queue.SimpleQueue()
        self._begun = False

    @property
    def full(self) -> bool:
        return self._copies.qsize() >= MAX_WAITING

    def queue(self, copy: Closeable, then: Callable[[], object]) -> None:
        """Close *copy*, then call *then*; returns at once."""
        if not self._begun:
            try:
                _thread.start_new_thread(self._work, ())
            except RuntimeError:  # no thread available: blocking is better than leaking
                _close(copy, then)
                return
            self._begun = True
        self._copies.put((copy, then))

    def close(self) -> None:
        if self._begun:
            self._copies.put(None)

    def _work(self) -> None:
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # the main thread handles signals
        while (last := self._copies.get()) is not None:
            _close(*last)


def _close(copy: Closeable, then: Callable[[], object]) -> None:
    try:
        copy.close()
    except OSError:  # it is closed anyway
        pass
    finally:
        then()
