"""The one thread that answers while the supervisor runs in the main thread."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Callable
from typing import Protocol

TICK_SECONDS = 0.01


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


class ProbeResponder:
    """Calls what was given for each readable socket, and every *moment* a hundred times a second."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._moments: list[Callable[[], None]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="doctor", daemon=True)

    def watch(self, source: HasDescriptor, serve: Callable[[], None]) -> None:
        """Before `start`."""
        self._selector.register(source.fileno(), selectors.EVENT_READ, serve)

    def each_moment(self, call: Callable[[], None]) -> None:
        self._moments.append(call)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._selector.close()

    def _run(self) -> None:
        while not self._over.is_set():
            ready = [key.data for key, _ in self._selector.select(TICK_SECONDS)]
            for call in (*ready, *self._moments):
                try:
                    call()
                except OSError:  # a client that left, or nothing there after all; the counts speak
                    pass
