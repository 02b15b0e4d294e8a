"""A token bucket: so many in a burst, so many a second after that."""

from __future__ import annotations


class TokenBucket:
    __slots__ = ("_burst", "_level", "_rate", "_then")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._then: float | None = None

    def take(self, now: float) -> bool:
        """Take one token if there is one. A clock that goes backwards gives none."""
        if self._then is not None and now > self._then:
            self._level = min(self._burst, self._level + (now - self._then) * self._rate)
        self._then = now
        if self._level < 1:
            return False
        self._level -= 1
        return True
