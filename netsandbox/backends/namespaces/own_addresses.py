"""The host's own addresses. Each of them reaches the host, so the address guard denies them."""

from __future__ import annotations

from netsandbox.policy.ip import Address, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FRESH_SECONDS = 5.0


def parse_fib_trie(text: str) -> frozenset[Address]:
    """IPv4 addresses marked `/32 host LOCAL` in /proc/net/fib_trie; the mark is on the line after the address."""
    found = set()
    last = ""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            last = words[1]
        elif "LOCAL" in words and "/32" in words:
            address = parse(last)
            if address is not None:
                found.add(address)
    return frozenset(found)


def parse_if_inet6(text: str) -> frozenset[Address]:
    """IPv6 addresses: the first field of each line of /proc/net/if_inet6, 32 hex digits."""
    words = [line.split(" ", 1)[0] for line in text.splitlines()]
    return frozenset(Address(6, int(word, 16)) for word in words if len(word) == 32)


class OwnAddresses:
    """Read again after five seconds, since interfaces change while a session runs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._read_at = float("-inf")
        self._known: frozenset[Address] = frozenset()

    def __call__(self) -> frozenset[Address]:
        now = self._clock()
        if now - self._read_at > FRESH_SECONDS:
            try:
                found = parse_fib_trie(_read("/proc/net/fib_trie")) | parse_if_inet6(_read("/proc/net/if_inet6"))
            except OSError:  # such as EMFILE: keep the known addresses; before the first read, deny all (INV-1)
                if not self._known:
                    raise
                return self._known
            if found != self._known:  # the same object while nothing changes: callers compare by identity
                self._known = found
            self._read_at = now
        return self._known


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, PermissionError):  # no IPv6, or a /proc without it: the guard's ranges still apply
        return ""
