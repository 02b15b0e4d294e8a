"""A loop in a thread of its own, as the supervisor has one, and errands that are run there."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from netsandbox.runtime.loop import IN, Loop
from tests.rig.waiting import PATIENCE


class LoopThread:
    """`run` does a thing on the loop's own thread, which begins with the first. No handler may have raised anything."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.loop = Loop(self.errors.append)
        self._errands: list[Callable[[], None]] = []
        self._bell = socket.socketpair()
        self._bell[0].setblocking(False)
        self.loop.watch(self._bell[0].fileno(), IN, self._on_bell)
        self._thread: threading.Thread | None = None

    def _on_bell(self, events: int) -> None:
        self._bell[0].recv(4096)
        while self._errands:
            self._errands.pop(0)()

    def run(self, errand: Callable[[], Any]) -> Any:
        """What the errand returns or raises."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.loop.run, daemon=True)
            self._thread.start()
        done, result, failure = threading.Event(), [], []

        def do() -> None:
            try:
                result.append(errand())
            except Exception as error:
                failure.append(error)
            finally:
                done.set()

        self._errands.append(do)
        self._bell[1].send(b"!")
        assert done.wait(PATIENCE)
        if failure:
            raise failure[0]
        return result[0]

    def effort(self, seconds: float) -> float:
        """How much of a while the loop spends awake, 0 to 1."""
        before = self.run(time.thread_time)
        time.sleep(seconds)
        spent: float = self.run(time.thread_time) - before
        return spent / seconds

    def end(self) -> None:
        self.run(self.loop.stop)
        assert self._thread is not None
        self._thread.join(PATIENCE)
        self.loop.close()
        for side in self._bell:
            side.close()
        assert self.errors == []
