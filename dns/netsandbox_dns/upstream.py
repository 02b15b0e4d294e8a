"""Lookups on the host's side, for names that the policy has already allowed.

Rules kept here:

1. A name is looked up once and the addresses are handed over together, so what is checked is what is dialled (INV-4).
   The gate checks the addresses, and the aliases in `chain`.
2. Every failure is a `LookupFailed` with one of five reasons; there is no answer of last resort (INV-1).
3. Memory and descriptors are bounded: `MAX_CACHED` names, `MAX_PENDING` lookups at once.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop

from netsandbox_dns.exchange import SERVFAIL, TIMEOUT, Exchange
from netsandbox_dns.resolv_conf import family_of
from netsandbox_dns.upstream_reply import Answer, follow_aliases
from netsandbox_dns.wire import AAAA, NXDOMAIN, A

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox_dns.resolv_conf import NameServers
    from netsandbox_dns.upstream_reply import Reply
    from netsandbox_dns.wire import Query

MAX_CACHED = 1024
MAX_PENDING = 256
MIN_TTL, MAX_TTL, FAILED_TTL = 1, 300, 2
SECOND_FAMILY_SECONDS = 0.3  # how long one family, having succeeded, waits for the other
_FAMILIES = {A: int(AF_INET), AAAA: int(AF_INET6)}
_NXDOMAIN, _EMPTY, _LOOP = "nxdomain", "empty", "loop"
_MOST_SPECIFIC_FIRST = (
    _NXDOMAIN,
    _LOOP,
    _EMPTY,
    SERVFAIL,
    TIMEOUT,
)  # of two failures the more specific one is reported


class Resolved:
    """The addresses of a name, IPv4 first, and the aliases that led there."""

    __slots__ = ("addresses", "chain", "ttl")

    def __init__(self, addresses: list[tuple[int, str]], chain: list[str], ttl: int) -> None:
        self.addresses = addresses
        self.chain = chain
        self.ttl = ttl


class LookupFailed:
    """nxdomain | servfail | timeout | empty | loop"""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Upstream:
    """One per supervisor; names given to it are canonical (ASCII, lower case, no trailing dot)."""

    def __init__(
        self,
        loop: Loop,
        servers: NameServers,
        hosts: dict[str, list[str]],
        clock: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._servers = servers
        self._hosts = hosts
        self._clock = clock
        self._cache: dict[str, tuple[float, Resolved | LookupFailed]] = {}  # stalest first
        self._pending: dict[str, Lookup] = {}
        self._forwarded = 0

    def knows(self, name: str) -> bool:
        """Whether a lookup would be answered without a query to a server."""
        return name in self._pending or self._known(name) is not None

    def lookup(self, name: str, done: Callable[[Resolved | LookupFailed], None]) -> None:
        """Call *done* once, now or later."""
        known = self._known(name)
        if known is not None:
            done(known)
            return
        pending = self._pending.get(name)
        if pending is not None:
            pending.waiting.append(done)
            return
        if len(self._pending) >= MAX_PENDING:
            done(LookupFailed(SERVFAIL))
            return
        if not is_queryable(name):
            done(LookupFailed(_NXDOMAIN))
            return
        lookup = self._pending[name] = Lookup(self._loop, name, done, self._finish)
        lookup.start(self._exchange)

    def forward(self, query: Query, done: Callable[[bytes | None], None]) -> None:
        """Send a query of another type to the servers; *done* gets a rebuilt reply, or None for every failure."""
        from netsandbox_dns.reply_rebuild import rebuilt

        if self._forwarded >= MAX_PENDING:
            done(None)
            return
        self._forwarded += 1

        def received(result: Reply | str) -> None:
            self._forwarded -= 1
            done(None if isinstance(result, str) else rebuilt(query, result))

        self._exchange(query.name.decode("ascii"), query.qtype, received)

    def close(self) -> None:
        for lookup in list(self._pending.values()):
            lookup.fail()

    def _exchange(self, name: str, qtype: int, done: Callable[[Reply | str], None]) -> Exchange:
        return Exchange(self._loop, self._servers, name, qtype, done)

    def _known(self, name: str) -> Resolved | LookupFailed | None:
        listed = self._hosts.get(name)
        if listed:
            pairs = [(family, text) for text in listed if (family := family_of(text)) is not None]
            return Resolved(sorted(pairs, key=_is_not_ipv4), [], MIN_TTL) if pairs else LookupFailed(_EMPTY)
        held = self._cache.pop(name, None)
        if held is None or held[0] <= self._clock():
            return None
        self._cache[name] = held
        return held[1]

    def _finish(self, lookup: Lookup, result: Resolved | LookupFailed) -> None:
        del self._pending[lookup.name]
        if len(self._cache) >= MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        life = result.ttl if isinstance(result, Resolved) else FAILED_TTL
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
    """One lookup: a query for each address family at once, and the callbacks of all who wait for the name."""

    def __init__(
        self,
        loop: Loop,
        name: str,
        done: Callable[[Resolved | LookupFailed], None],
        settled: Callable[[Lookup, Resolved | LookupFailed], None],
    ) -> None:
        self.name = name
        self.waiting = [done]
        self._loop = loop
        self._labels = tuple(name.encode("ascii").lower().split(b"."))
        self._finish = settled
        self._results: dict[int, Answer | str] = {}
        self._exchanges: list[Exchange] = []
        self._timer: Timer | None = None
        self._is_over = False

    def start(self, exchange: Callable[[str, int, Callable[[Reply | str], None]], Exchange]) -> None:
        for qtype in (A, AAAA):
            if not self._is_over:
                self._exchanges.append(exchange(self.name, qtype, self._receiver(qtype)))

    def fail(self) -> None:
        self._results = {A: SERVFAIL}
        self._finish_lookup()

    def _receiver(self, qtype: int) -> Callable[[Reply | str], None]:
        return lambda result: self._receive(qtype, result)

    def _receive(self, qtype: int, result: Reply | str) -> None:
        if isinstance(result, str):
            self._results[qtype] = result
        elif result.rcode == NXDOMAIN:
            self._results[qtype] = _NXDOMAIN
        else:
            path = follow_aliases(result, self._labels, qtype)
            self._results[qtype] = _LOOP if path is None else path if path.addresses else _EMPTY
        if len(self._results) == len(_FAMILIES):
            self._finish_lookup()
        elif isinstance(self._results[qtype], Answer):
            self._timer = self._loop.call_later(SECOND_FAMILY_SECONDS, self._finish_lookup)

    def _finish_lookup(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        for exchange in self._exchanges:
            exchange.cancel()
        self._finish(self, self._result())

    def _result(self) -> Resolved | LookupFailed:
        paths = [(qtype, path) for qtype in (A, AAAA) if isinstance(path := self._results.get(qtype), Answer)]
        if not paths:
            return LookupFailed(
                min((r for r in self._results.values() if isinstance(r, str)), key=_MOST_SPECIFIC_FIRST.index)
            )
        addresses = [(_FAMILIES[q], inet_ntop(_FAMILIES[q], packed)) for q, path in paths for packed in path.addresses]
        chain = list(dict.fromkeys(alias for _, path in paths for alias in path.chain))
        ttl = min(path.ttl for _, path in paths)
        return Resolved(addresses, chain, min(max(ttl, MIN_TTL), MAX_TTL))


def is_queryable(name: str) -> bool:
    """Whether *name* fits a DNS query. The gate passes no other, but a bug there must not become an exception here."""
    return name.isascii() and len(name) <= 253 and all(0 < len(label) <= 63 for label in name.split("."))


def _is_not_ipv4(pair: tuple[int, str]) -> bool:
    return pair[0] != AF_INET
