"""Waiting for what happens, with patience, and never for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

from netsandbox.runtime.loop import Loop

PATIENCE = 20.0


def wait_for(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def turn_until(loop: Loop, condition: Callable[[], object]) -> None:
    """The same where nobody else runs the loop."""
    deadline = time.monotonic() + PATIENCE

    def look() -> None:
        if condition() or time.monotonic() > deadline:
            loop.stop()
        else:
            loop.call_later(0.002, look)

    loop.call_later(0, look)
    loop.run()
    assert condition(), "waited in vain"
