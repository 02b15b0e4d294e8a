"""Waiting for what happens, with patience, and never for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

from netsandbox.runtime.loop import Loop
from tests.rig.patience import WaitedInVain

PATIENCE = 20.0


def wait_for(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise WaitedInVain(f"not within {patience} s")
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
    if not condition():
        raise WaitedInVain(f"not within {PATIENCE} s")
