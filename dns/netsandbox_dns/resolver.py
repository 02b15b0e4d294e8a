"""The resolver door's logic, without sockets: one query in, one reply out, and every query in a record.

Rules kept here:

1. No name is looked up here: an allowed name gets a synthetic address, and the host looks it up when it is dialled
   (INV-4). Only queries of the types in `ResolverOptions.forward_types` leave the host, and only for allowed names.
2. The record of a query is in the log before the first reply of its kind leaves (INV-5, `audit.folding`). A door that
   calls `hold` sends none of the replies that it gets from then on before `release` returns True.
3. Every failure is answered with SERVFAIL or nothing, never with an address (INV-1).
4. A reply is cached only while its record counts repeats and no synthetic address was evicted.
"""

from __future__ import annotations

from netsandbox.audit.folding import Folding, Repeats
from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox.policy.query_types import type_name
from netsandbox_dns import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from netsandbox.policy.verdict import Verdict
    from netsandbox.runtime.loop import Loop
    from netsandbox_dns.synthetic_pool import SyntheticPool
    from netsandbox_dns.tunnel_guard import TunnelGuard

    QueryKind = tuple[str, int, bool, str, str | None]  # host, type, allowed, reason, rule
    RecordQuery = Callable[[QueryKind, int, int], bool]  # writes one record for that many equal queries
    Respond = Callable[[bytes, Any, Any], None]
    Forward = Callable[[wire.Query, Callable[[bytes | None], None]], None]

    class HoldingLog(Protocol):
        """Collects records from `hold` to `release`, which returns whether all of them were written."""

        def hold(self) -> None: ...
        def release(self) -> bool: ...


TTL = 60
MAX_REPLIES = 8192
MAX_KEY = 512  # a query can carry 64 KB of EDNS options; such a query is answered and its reply not cached
MAX_KINDS = 4096
MAX_RATE, MAX_BURST = 40_000, 80_000  # queries a second that are not in the cache; the others are refused
_LOOPBACK_4, _LOOPBACK_6 = b"\x7f\0\0\1", b"\0" * 15 + b"\1"
_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_REVERSE_ZONE = (b"in-addr", b"arpa")
_EMPTY_TYPES = (wire.AAAA, wire.HTTPS, wire.SVCB)


@frozen
class ResolverOptions:
    """What a session may set. *host_names* mean loopback; *forward* puts queries of *forward_types* to the servers.

    *log* writes the records of several queries in one step; without it each record is written at once. *on_denied* gets
    every denied query with its source, repeats too.
    """

    host_names: tuple[str, ...] = ()
    forward: Forward | None = None
    forward_types: frozenset[str] = frozenset()
    log: HoldingLog | None = None
    on_denied: Callable[[QueryKind, object], None] | None = None


class TokenBucket:
    """Lets *burst* events pass at once and *rate* a second after that."""

    __slots__ = ("_burst", "_level", "_rate", "_then")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._then: float | None = None

    def take(self, now: float) -> bool:
        """Take one token if there is one. A clock that goes backwards adds none."""
        if self._then is not None and now > self._then:
            level = self._level + (now - self._then) * self._rate
            self._level = level if level < self._burst else self._burst
        self._then = now
        if self._level < 1:
            return False
        self._level -= 1
        return True


class Resolver:
    """One per session. *decide* is the policy's verdict on a name, *record* writes to the audit log."""

    def __init__(
        self,
        loop: Loop,
        decide: Callable[[bytes], Verdict],
        record: RecordQuery,
        pool: SyntheticPool,
        guard: TunnelGuard,
        options: ResolverOptions = ResolverOptions(),  # noqa: B008 (frozen)
    ) -> None:
        self._now = loop.now
        self._decide = decide
        self._pool = pool
        self._guard = guard
        self._loopback_names = _LOOPBACK_NAMES | {name.rstrip(".").lower() for name in options.host_names}
        self._forward = options.forward
        self._forward_types = options.forward_types
        self._log = options.log
        self._on_denied = options.on_denied
        self._limit = TokenBucket(MAX_RATE, MAX_BURST)
        # Query without id -> reply without id. A door that counts the repeat, as `answer` does, may look here itself.
        self.replies: dict[bytes, tuple[bytes, Repeats]] = {}
        self._folding = Folding(
            record, max_kinds=MAX_KINDS, call_later=loop.call_later, on_close=self._forget_closed_kinds
        )
        pool.on_evict = self.replies.clear

    def answer(
        self,
        data: bytes,
        transport: str,
        source: Any = None,
        destination: Any = None,
        respond: Respond | None = None,
    ) -> bytes | None:
        """The reply to *data*. None: there is none, or *respond(reply, source, destination)* is called later."""
        key = data[2:]
        cached = self.replies.get(key)
        if cached is not None:
            cached[1].count += 1
            return data[:2] + cached[0]
        query = wire.parse_query(data)
        if type(query) is wire.BadQuery:
            return self._reject(query)
        assert type(query) is wire.Query
        if not self._limit.take(self._now()):
            return self._over_limit(query)
        kind, reply = self._resolve(query)
        repeats = self._folding.count(kind)
        if repeats is None:
            return wire.servfail(query)
        if reply is None:
            if not self.release():  # the query leaves the host, so its record is written first
                return wire.servfail(query)
            return self._forward_query(query, transport, source, destination, respond)
        if not kind[2] and self._on_denied is not None:
            self._on_denied(kind, source)
        elif len(data) <= MAX_KEY and kind[3] != reasons.INTERNAL:
            if len(self.replies) >= MAX_REPLIES:
                self._forget_oldest_replies()
            self.replies[key] = (reply[2:], repeats)
        return reply

    def hold(self) -> None:
        """Collect the records of the next queries, which are written in one step by `release`."""
        if self._log is not None:
            self._log.hold()

    def release(self) -> bool:
        """Write what was collected. False: a query since `hold` may only be answered with its `failure`."""
        if self._log is None or self._log.release():
            return True
        self._folding.fail()
        return False

    def failure(self, data: bytes) -> bytes | None:
        """The reply that grants nothing. Without one, clients would wait for each name while the log is full."""
        query = wire.parse_query(data)
        return wire.servfail(query) if type(query) is wire.Query else None

    def flush(self) -> None:
        """Write the counts that are in no record yet; the session calls this when it ends."""
        self._folding.flush()

    def _resolve(self, query: wire.Query) -> tuple[QueryKind, bytes | None]:
        """The record of *query* and the reply to it; None in place of the reply: forward the query."""
        try:
            if not query.clean:  # the policy never sees it
                return self._denied(query, query.name.decode("ascii"), reasons.BAD_NAME, None)
            qtype = query.qtype
            if qtype == wire.PTR and query.labels[-1].lower() == b"arpa":
                return self._reverse(query)
            decided = self._decide(query.name)
            host = decided.host
            if decided.reason == reasons.LOOPBACK or host in self._loopback_names or host.endswith(".localhost"):
                return (host, qtype, True, reasons.LOOPBACK, None), _loopback_reply(query)
            if not decided.allowed:
                return self._denied(query, host, decided.reason, decided.rule)
            if decided.wildcard is not None:
                reason = self._guard.admit(host, decided.wildcard, self._now())
                if reason is not None:
                    return self._denied(query, host, reason, decided.rule)
            return self._allowed(query, host, decided)
        except Exception:  # without a verdict nothing is allowed
            host = query.name.decode("ascii").lower()
            return (host, query.qtype, False, reasons.INTERNAL, None), wire.servfail(query)

    def _allowed(self, query: wire.Query, host: str, decided: Verdict) -> tuple[QueryKind, bytes | None]:
        qtype = query.qtype
        reply: bytes | None
        if qtype == wire.A:
            reply = wire.address_answer(query, self._pool.address_of(host), TTL)
        elif qtype in _EMPTY_TYPES:
            reply = wire.nodata(query)
        elif self._may_forward(qtype, decided.reason):
            reason = self._guard.charge(decided.wildcard, self._now())
            if reason is not None:
                return self._denied(query, host, reason, decided.rule)
            reply = None
        else:
            return (host, qtype, False, reasons.QUERY_TYPE, decided.rule), wire.refused(query, reasons.QUERY_TYPE)
        return (host, qtype, True, decided.reason, decided.rule), reply

    def _may_forward(self, qtype: int, reason: str) -> bool:
        """A name that the user has not approved yet is allowed only as far as connecting: no query for it leaves."""
        is_listed = bool(self._forward_types) and type_name(qtype) in self._forward_types
        return is_listed and self._forward is not None and reason != reasons.ASK

    def _denied(self, query: wire.Query, host: str, reason: str, rule: str | None) -> tuple[QueryKind, bytes]:
        return (host, query.qtype, False, reason, rule), wire.nxdomain(query, reason)

    def _reverse(self, query: wire.Query) -> tuple[QueryKind, bytes]:
        """Only addresses of loopback and of the pool have names here; no server is queried."""
        host = query.name.decode("ascii").lower()
        packed = _reverse_address(query.labels)
        if packed is not None and packed[0] == 127:
            return (host, wire.PTR, True, reasons.LOOPBACK, None), wire.pointer_answer(query, "localhost", TTL)
        name = self._pool.name_of_packed(packed) if packed is not None else None
        if name is None:
            return self._denied(query, host, reasons.NOT_ALLOWED, None)
        return (host, wire.PTR, True, reasons.RULE, None), wire.pointer_answer(query, name, TTL)

    def _forward_query(
        self, query: wire.Query, transport: str, source: Any, destination: Any, respond: Respond | None
    ) -> bytes | None:
        if respond is None or self._forward is None:
            return wire.servfail(query)
        send = respond

        def finish(reply: bytes | None) -> None:
            if reply is None:
                reply = wire.servfail(query)
            elif transport == "udp" and len(reply) > query.udp_size:
                reply = wire.truncated(query)
            send(reply, source, destination)

        try:
            self._forward(query, finish)
        except Exception:
            return wire.servfail(query)
        return None

    def _reject(self, query: wire.BadQuery) -> bytes | None:
        # All malformed messages are one kind: the client chooses their bytes, and must not choose how many records.
        if self._folding.count(("", 0, False, query.reason, None)) is None:
            return None
        return wire.bad_query_answer(query)

    def _over_limit(self, query: wire.Query) -> bytes:
        repeats = self._folding.count(("", 0, False, reasons.LIMIT, None))
        return wire.servfail(query) if repeats is None else wire.refused(query, reasons.LIMIT)

    def _forget_oldest_replies(self) -> None:
        for key in list(self.replies)[: MAX_REPLIES // 2]:
            del self.replies[key]

    def _forget_closed_kinds(self) -> None:
        """Drop the replies whose kind was closed. While the log fails drop all, so that each query needs a record."""
        if self._folding.is_broken:
            self.replies.clear()
            return
        for key in [key for key, (_, repeats) in self.replies.items() if not repeats.is_open]:
            del self.replies[key]


def _loopback_reply(query: wire.Query) -> bytes:
    if query.qtype == wire.A:
        return wire.address_answer(query, _LOOPBACK_4, TTL)
    if query.qtype == wire.AAAA:
        return wire.address_answer(query, _LOOPBACK_6, TTL)
    return wire.nodata(query)


def _reverse_address(labels: tuple[bytes, ...]) -> bytes | None:
    """The four bytes that d.c.b.a.in-addr.arpa stands for, if it is spelled canonically."""
    if len(labels) != 6 or tuple(label.lower() for label in labels[4:]) != _REVERSE_ZONE:
        return None
    digits = [label for label in labels[3::-1] if label.isdigit() and len(label) <= 3 and int(label) < 256]
    if len(digits) != 4 or any(label != b"%d" % int(label) for label in digits):
        return None
    return bytes(int(label) for label in digits)
