"""Lookups on the host's side, for names that the policy has already allowed.

Rules kept here:

1. A name is looked up once and the addresses are handed over together, so what is checked is what is dialled (INV-4).
   Judging the addresses, and the aliases in `chain`, is the launcher's part.
2. Every failure is a `Failed` with one of five reasons; there is no answer of last resort (INV-1).
3. Memory and descriptors are bounded: `CACHE_MAX` names, `PENDING_MAX` lookups at once.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop

from netsandbox_dns.exchange import SERVFAIL, TIMEOUT, Exchange
from netsandbox_dns.message import Path, follow
from netsandbox_dns.settings import family_of
from netsandbox_dns.wire import AAAA, NXDOMAIN, A

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox_dns.message import Reply
    from netsandbox_dns.wire import Query

CACHE_MAX = 1024
PENDING_MAX = 256
TTL_MIN, TTL_MAX, FAILED_TTL = 1, 300, 2
GRACE = 0.3  # how long one family, having succeeded, waits for the other
_FAMILIES = {A: int(AF_INET), AAAA: int(AF_INET6)}
_NXDOMAIN, _EMPTY, _LOOP = "nxdomain", "empty", "loop"
_TELLING = (_NXDOMAIN, _LOOP, _EMPTY, SERVFAIL, TIMEOUT)  # of two failures, the one that says more


class Found:
    """The addresses of a name, IPv4 first, and the aliases that led there."""

    __slots__ = ("addresses", "chain", "ttl")

    def __init__(self, addresses: list[tuple[int, str]], chain: list[str], ttl: int) -> None:
        self.addresses = addresses
        self.chain = chain
        self.ttl = ttl


class Failed:
    """nxdomain | servfail | timeout | empty | loop"""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Upstream:
    """One per supervisor; names given to it are canonical (ASCII, lower case, no trailing dot)."""

    def __init__(
        self,
        loop: Loop,
        servers: list[tuple[str, int]],
        hosts: dict[str, list[str]],
        clock: Callable[[], float],
        *,
        timeout: float = 2.0,
        attempts: int = 2,
    ) -> None:
        self._loop = loop
        self._servers = servers
        self._hosts = hosts
        self._clock = clock
        self._timeout = timeout
        self._attempts = attempts
        self._cache: dict[str, tuple[float, Found | Failed]] = {}  # stalest first
        self._pending: dict[str, Lookup] = {}
        self._forwarded = 0

    def knows(self, name: str) -> bool:
        """Whether a lookup now would put no question to a server."""
        return name in self._pending or self._known(name) is not None

    def lookup(self, name: str, done: Callable[[Found | Failed], None]) -> None:
        """Call *done* once, now or later."""
        known = self._known(name)
        if known is not None:
            done(known)
            return
        pending = self._pending.get(name)
        if pending is not None:
            pending.waiting.append(done)
            return
        if len(self._pending) >= PENDING_MAX:
            done(Failed(SERVFAIL))
            return
        if not is_askable(name):
            done(Failed(_NXDOMAIN))
            return
        lookup = self._pending[name] = Lookup(self._loop, name, done, self._settled)
        lookup.start(self._exchange)

    def forward(self, query: Query, done: Callable[[bytes | None], None]) -> None:
        """Put a question of another type to the servers; *done* gets a rebuilt reply, or None for every failure."""
        from netsandbox_dns.reply_rebuild import rebuilt

        if self._forwarded >= PENDING_MAX:
            done(None)
            return
        self._forwarded += 1

        def heard(result: Reply | str) -> None:
            self._forwarded -= 1
            done(None if isinstance(result, str) else rebuilt(query, result))

        self._exchange(query.name.decode("ascii"), query.qtype, heard)

    def close(self) -> None:
        for lookup in list(self._pending.values()):
            lookup.abandon()

    def _exchange(self, name: str, qtype: int, done: Callable[[Reply | str], None]) -> Exchange:
        return Exchange(self._loop, self._servers, name, qtype, done, timeout=self._timeout, attempts=self._attempts)

    def _known(self, name: str) -> Found | Failed | None:
        listed = self._hosts.get(name)
        if listed:
            pairs = [(family, text) for text in listed if (family := family_of(text)) is not None]
            return Found(sorted(pairs, key=_four_first), [], TTL_MIN) if pairs else Failed(_EMPTY)
        held = self._cache.pop(name, None)
        if held is None or held[0] <= self._clock():
            return None
        self._cache[name] = held
        return held[1]

    def _settled(self, lookup: Lookup, result: Found | Failed) -> None:
        del self._pending[lookup.name]
        if len(self._cache) >= CACHE_MAX:
            del self._cache[next(iter(self._cache))]
        life = result.ttl if isinstance(result, Found) else FAILED_TTL
        self._cache[lookup.name] = (self._clock() + life, result)
        failure: Exception | None = None
        for done in lookup.waiting:
            try:
                done(result)
            except Exception as error:  # one waiter's fault must not leave the others waiting
                failure = error
        if failure is not None:
            raise failure


class Lookup:
    """One name on its way: both families asked at once, everyone who wants it waiting together."""

    def __init__(
        self,
        loop: Loop,
        name: str,
        done: Callable[[Found | Failed], None],
        settled: Callable[[Lookup, Found | Failed], None],
    ) -> None:
        self.name = name
        self.waiting = [done]
        self._loop = loop
        self._labels = tuple(name.encode("ascii").lower().split(b"."))
        self._settled = settled
        self._results: dict[int, Path | str] = {}
        self._exchanges: list[Exchange] = []
        self._grace: Timer | None = None
        self._over = False

    def start(self, ask: Callable[[str, int, Callable[[Reply | str], None]], Exchange]) -> None:
        for qtype in (A, AAAA):
            if not self._over:
                self._exchanges.append(ask(self.name, qtype, self._hearer(qtype)))

    def abandon(self) -> None:
        self._results = {A: SERVFAIL}
        self._settle()

    def _hearer(self, qtype: int) -> Callable[[Reply | str], None]:
        return lambda result: self._heard(qtype, result)

    def _heard(self, qtype: int, result: Reply | str) -> None:
        if isinstance(result, str):
            self._results[qtype] = result
        elif result.rcode == NXDOMAIN:
            self._results[qtype] = _NXDOMAIN
        else:
            path = follow(result, self._labels, qtype)
            self._results[qtype] = _LOOP if path is None else path if path.addresses else _EMPTY
        if len(self._results) == len(_FAMILIES):
            self._settle()
        elif isinstance(self._results[qtype], Path):
            self._grace = self._loop.call_later(GRACE, self._settle)

    def _settle(self) -> None:
        if self._over:
            return
        self._over = True
        if self._grace is not None:
            self._grace.cancel()
        for exchange in self._exchanges:
            exchange.cancel()
        self._settled(self, self._result())

    def _result(self) -> Found | Failed:
        paths = [(qtype, path) for qtype in (A, AAAA) if isinstance(path := self._results.get(qtype), Path)]
        if not paths:
            return Failed(min((r for r in self._results.values() if isinstance(r, str)), key=_TELLING.index))
        addresses = [(_FAMILIES[q], inet_ntop(_FAMILIES[q], packed)) for q, path in paths for packed in path.addresses]
        chain = list(dict.fromkeys(alias for _, path in paths for alias in path.chain))
        ttl = min(path.ttl for _, path in paths)
        return Found(addresses, chain, min(max(ttl, TTL_MIN), TTL_MAX))


def is_askable(name: str) -> bool:
    """A name that fits a question: the launcher sends no other, but a bug there must not become an exception here."""
    return name.isascii() and len(name) <= 253 and all(0 < len(label) <= 63 for label in name.split("."))


def _four_first(pair: tuple[int, str]) -> bool:
    return pair[0] != AF_INET
