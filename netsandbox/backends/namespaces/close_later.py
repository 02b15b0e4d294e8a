"""Lets go of copies of the command's sockets, and answers then, in a thread of its own.

First the copy, then the answer: a port is free as soon as the command closes its own socket, not some time later. And
in a thread, because close(2) of the last descriptor of a TCP connection may wait as long as SO_LINGER says, which is
the command's to set: on the loop's thread it would keep every door of the session waiting. What is waited for is
bounded; whoever finds `full` refuses the next call unseen.
"""

from __future__ import annotations

import _queue
import _signal
import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Mortal(Protocol):
        def close(self) -> None: ...


MOST = 64


class CloseLater:
    """`bury` returns at once. The thread begins with the first burial and ends with `close`."""

    def __init__(self) -> None:
        self._dead: _queue.SimpleQueue[tuple[Mortal, Callable[[], object]] | None] = _queue.SimpleQueue()
        self._begun = False

    @property
    def full(self) -> bool:
        return self._dead.qsize() >= MOST

    def bury(self, dead: Mortal, then: Callable[[], object]) -> None:
        """Close *dead*, then call *then*."""
        if not self._begun:
            try:
                _thread.start_new_thread(self._work, ())
            except RuntimeError:  # no thread to be had: waiting is better than leaking
                _end(dead, then)
                return
            self._begun = True
        self._dead.put((dead, then))

    def close(self) -> None:
        if self._begun:
            self._dead.put(None)

    def _work(self) -> None:
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # signals are the main thread's
        while (last := self._dead.get()) is not None:
            _end(*last)


def _end(dead: Mortal, then: Callable[[], object]) -> None:
    try:
        dead.close()
    except OSError:  # it is closed all the same
        pass
    finally:
        then()
