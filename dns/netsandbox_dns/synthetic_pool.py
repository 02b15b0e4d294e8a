"""Synthetic addresses: each allowed name of a session gets one, and a connection to it is a connection to that name.

Rules kept here:

1. One name has one address and one address one name, for as long as the name is among the *size* last used.
2. An address whose name was forgotten is not given to another name until the whole network has been gone through, so a
   stale address in a client's cache stands for no name rather than for another one.
3. `on_evict` is called when names are forgotten, so that replies made from the pool can be dropped with them.
"""

from __future__ import annotations

from _socket import AF_INET, inet_pton

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class SyntheticPool:
    """Names to addresses and back; memory is bounded by *size* names."""

    def __init__(self, network: str = "198.18.0.0/15", size: int = 65536) -> None:
        base, _, width = network.partition("/")
        self._first = int.from_bytes(inet_pton(AF_INET, base), "big") + 1  # never the network's own address
        self._room = (1 << (32 - int(width))) - 2  # nor its broadcast address
        if not 0 < size <= self._room:
            raise ValueError(f"a pool of {size} names does not fit {network}")
        self._size = size
        self._batch = max(1, size // 16)  # forgetting in batches makes `on_evict` rare, so it may be costly
        self._cursor = 0
        self._numbers: dict[str, int] = {}  # in order of use, the stalest first
        self._names: dict[int, str] = {}
        self.on_evict: Callable[[], object] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def address_of(self, name: str) -> bytes:
        """The four bytes that stand for *name*, now its most recently used."""
        number = self._numbers.pop(name, None)
        if number is None:
            if len(self._numbers) >= self._size:
                self._forget()
            number = self._next()
            self._names[number] = name
        self._numbers[name] = number
        return number.to_bytes(4, "big")

    def name_of(self, address: str) -> str | None:
        """The name behind an address in dotted form, or None: not ours, never given out, or forgotten."""
        try:
            return self.name_of_packed(inet_pton(AF_INET, address))
        except (OSError, UnicodeError, ValueError):
            return None

    def name_of_packed(self, packed: bytes) -> str | None:
        name = self._names.get(int.from_bytes(packed, "big")) if len(packed) == 4 else None
        if name is not None:  # a name that is being dialled is in use
            self._numbers[name] = self._numbers.pop(name)
        return name

    def _next(self) -> int:
        while True:  # ends: at most *size* of the room's numbers are taken, and there is room for one more
            number = self._first + self._cursor
            self._cursor = (self._cursor + 1) % self._room
            if number not in self._names:
                return number

    def _forget(self) -> None:
        stalest = iter(self._numbers)
        for name in [next(stalest) for _ in range(self._batch)]:
            del self._names[self._numbers.pop(name)]
        if self.on_evict is not None:
            self.on_evict()
