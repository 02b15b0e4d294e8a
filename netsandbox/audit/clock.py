"""RFC 3339 time stamps, UTC, microseconds; the part down to the second is formatted once a second."""

from __future__ import annotations

import time


class Clock:
    """`stamp()` gives the time now; `second` changes when a new second began."""

    __slots__ = ("_prefix", "second")

    def __init__(self) -> None:
        self.second = -1
        self._prefix = ""

    def stamp(self) -> str:
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        if second != self.second:
            self.second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        return f"{self._prefix}{nanoseconds // 1000:06d}Z"
