"""How many bytes a connection with a budget may still pass to and from the server, as the worker keeps it.

The worker asks for the bytes that it has in hand (`spend`), and the supervisor counts them when it says yes
(`allowance`). A connection that has passed much asks ahead for a part of that, since each question costs as much as
some ten kilobytes. The supervisor resets the connection when the budget is used up, so no answer is zero.
"""

from __future__ import annotations

from collections.abc import Callable

from netsandbox.runtime.loop import IN, OUT

AHEAD = 1 << 20  # bytes that are asked for without being there, at most
SHARE = 4  # of what was granted so far, a fourth is asked for ahead


class Way:
    """One direction. `left` may pass now; *ask(count)* asks the supervisor for more, one question at a time."""

    def __init__(self, ask: Callable[[int], None]) -> None:
        self._ask = ask
        self._granted = 0
        self.left = 0
        self.awaits = False

    def take(self, wanted: int) -> int:
        """How many of *wanted* bytes may pass now; with 0 the question is under way."""
        if not self.left and wanted and not self.awaits:
            self.awaits = True
            self._ask(max(wanted, min(self._granted // SHARE, AHEAD)))
        return min(self.left, wanted)

    def add(self, count: int) -> None:
        self._granted += count
        self.left += count
        self.awaits = self.awaits and not count


class Allowance:
    """Both directions. *ask(up, down)* asks the supervisor."""

    def __init__(self, ask: Callable[[int, int], None]) -> None:
        self.up = Way(lambda count: ask(count, 0))
        self.down = Way(lambda count: ask(0, count))

    def events(self, wanted: int) -> int:
        """Of *wanted* events of the server's socket, those that are not stopped by an open question."""
        return wanted & ~((OUT if self.up.awaits else 0) | (IN if self.down.awaits else 0))
