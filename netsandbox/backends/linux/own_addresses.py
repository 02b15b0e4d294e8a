"""The host's own addresses. Each of them reaches the host, so the address guard denies them.

A local route can be wider than one address (`ip route add local 203.0.113.0/24 dev lo`, as anycast and load balancers
have it): every address in it reaches the host.
"""

from __future__ import annotations

from netsandbox.policy.ip import BITS, Address, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FRESH_SECONDS = 5.0
REACHES_HOST = 0x80000000 | 0x00100000  # RTF_LOCAL, RTF_ANYCAST of linux/ipv6_route.h
ROUTES4, ROUTES6, ADDRESSES6 = "/proc/net/fib_trie", "/proc/net/ipv6_route", "/proc/net/if_inet6"


class LocalAddresses:
    """A collection of addresses and of whole networks. Iteration yields the addresses alone."""

    def __init__(self, routes: Iterable[tuple[Address, int]] = ()) -> None:
        """*routes*: addresses with the lengths of their prefixes."""
        known = frozenset(routes)
        self.addresses = frozenset(address for address, length in known if length == BITS[address.version])
        shifts = ((address, BITS[address.version] - length) for address, length in known)
        self.networks = frozenset((each.version, shift, each.value >> shift) for each, shift in shifts if shift)

    def __contains__(self, address: object) -> bool:
        if address in self.addresses:
            return True
        return isinstance(address, Address) and any(
            version == address.version and address.value >> shift == prefix for version, shift, prefix in self.networks
        )

    def __iter__(self) -> Iterator[Address]:
        return iter(self.addresses)

    def __len__(self) -> int:
        return len(self.addresses) + len(self.networks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LocalAddresses):
            return NotImplemented
        return self.addresses == other.addresses and self.networks == other.networks

    def __hash__(self) -> int:
        return hash((self.addresses, self.networks))


def parse_fib_trie(text: str) -> Iterator[tuple[Address, int]]:
    """IPv4 routes marked LOCAL in /proc/net/fib_trie. The mark `/24 host LOCAL` is on a line after the address."""
    last = ""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["|--"] and len(words) > 1:
            last = words[1]
        elif "LOCAL" in words and words[0].startswith("/"):
            address, length = parse(last), _number(words[0][1:], 10)
            if address is not None and address.version == 4 and length is not None and length <= 32:
                yield address, length


def parse_if_inet6(text: str) -> Iterator[tuple[Address, int]]:
    """IPv6 addresses: the first field of each line of /proc/net/if_inet6, 32 hex digits."""
    for line in text.splitlines():
        word = line.split(" ", 1)[0]
        value = _number(word, 16)
        if len(word) == 32 and value is not None:
            yield Address(6, value), 128


def parse_ipv6_route(text: str) -> Iterator[tuple[Address, int]]:
    """IPv6 routes of /proc/net/ipv6_route that reach the host: destination, prefix, …, flags in the ninth field."""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 9 or len(words[0]) != 32:
            continue
        value, length, flags = (_number(words[at], 16) for at in (0, 1, 8))
        if value is not None and length is not None and length <= 128 and flags is not None and flags & REACHES_HOST:
            yield Address(6, value), length


def _number(text: str, base: int) -> int | None:
    """int() would take signs, blanks and underscores too."""
    digits = "0123456789abcdef"[:base]
    return int(text, base) if text and all(char in digits for char in text) else None


class OwnAddresses:
    """Read again after five seconds, since interfaces change while a session runs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._read_at = float("-inf")
        self._known = LocalAddresses()

    def __call__(self) -> LocalAddresses:
        now = self._clock()
        if now - self._read_at > FRESH_SECONDS:
            try:
                found = LocalAddresses(_routes())
            except OSError:  # such as EMFILE: keep the known addresses; before the first read, deny all (INV-1)
                if not self._known:
                    raise
                return self._known
            if found != self._known:  # the same object while nothing changes: callers compare by identity
                self._known = found
            self._read_at = now
        return self._known


def _routes() -> Iterator[tuple[Address, int]]:
    yield from parse_fib_trie(_read(ROUTES4))
    yield from parse_if_inet6(_read_if_there(ADDRESSES6))
    yield from parse_ipv6_route(_read_if_there(ROUTES6))


def _read_if_there(path: str) -> str:
    """Empty on a kernel without IPv6, which still has the file for IPv4."""
    try:
        return _read(path)
    except FileNotFoundError:
        return ""


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
