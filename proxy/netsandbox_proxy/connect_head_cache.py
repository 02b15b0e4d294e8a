"""CONNECT heads that have been read before, byte for byte.

Reading a head is a pure function of its bytes, and clients repeat theirs exactly; so the same bytes give the same
destination without reading them again. Only a head that passed every check, the session's token included, is
remembered, and only its destination: the gate is asked each time all the same (INV-3).
"""

from __future__ import annotations

ENTRIES = 512
LONGEST = 1024


class ConnectHeadCache:
    """Bounded; the oldest entry goes first."""

    __slots__ = ("_destinations", "recall")

    def __init__(self) -> None:
        self._destinations: dict[bytes, tuple[bytes, int]] = {}
        self.recall = self._destinations.get

    def learn(self, head: bytes, host: bytes, port: int) -> None:
        if len(head) > LONGEST:
            return
        if len(self._destinations) >= ENTRIES:
            del self._destinations[next(iter(self._destinations))]
        self._destinations[head] = (host, port)
