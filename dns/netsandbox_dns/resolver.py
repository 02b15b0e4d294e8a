"""The door's logic without sockets: one query in, one reply out, every question accounted for.

Rules kept here:

1. Nothing is asked of the world: an allowed name gets a synthetic address, and the real lookup happens on the host when
   somebody dials it (INV-4). Only types that the judgement names for forwarding leave, through the injected `forward`.
2. A record stands in the log before the first answer of its kind leaves (INV-5, ledger.py).
3. Every failure answers SERVFAIL or nothing, never an address (INV-1).
4. A reply in the byte cache is good only while its record's window is open and no synthetic address was forgotten.
"""

from __future__ import annotations

from netsandbox_dns import wire
from netsandbox_dns.bucket import TokenBucket
from netsandbox_dns.contract import BAD_NAME, INTERNAL, LIMIT, LOOPBACK, NOT_ALLOWED, QUERY_TYPE, RULE
from netsandbox_dns.folding import FoldedQueries, Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from netsandbox_dns.contract import Judgement, Note
    from netsandbox_dns.pool import SyntheticPool
    from netsandbox_dns.tunnel_guard import TunnelGuard

    Respond = Callable[[bytes, Any, Any], None]
    Forward = Callable[[wire.Query, Callable[[bytes | None], None]], None]

TTL = 60
REPLIES_MAX = 8192
KEY_MAX = 512  # a query can carry 64 KB of EDNS options; such a one is answered and not remembered
COLD_RATE, COLD_BURST = 40_000, 80_000  # questions a second that are not repeats; a flood beyond that is refused
_FOUR, _SIX = b"\x7f\0\0\1", b"\0" * 15 + b"\1"
_LOCAL = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_ARPA = (b"in-addr", b"arpa")


class Outcome:
    """What one question comes to: the record to write, then the reply to send (None: forward it)."""

    __slots__ = ("allowed", "host", "reason", "reply", "rule")

    def __init__(self, host: str, *, allowed: bool, reason: str, rule: str | None, reply: bytes | None) -> None:
        self.host = host
        self.allowed = allowed
        self.reason = reason
        self.rule = rule
        self.reply = reply


class Resolver:
    """One per session. *judge* and *note* are the launcher's; *later* is its loop's `call_later`."""

    def __init__(
        self,
        judge: Callable[[bytes, int], Judgement],
        note: Note,
        pool: SyntheticPool,
        guard: TunnelGuard,
        clock: Callable[[], float],
        *,
        later: Callable[[float, Callable[[], None]], object] | None = None,
        host_names: Iterable[str] = (),
        forward: Forward | None = None,
        cold: TokenBucket | None = None,
    ) -> None:
        self._judge = judge
        self._pool = pool
        self._guard = guard
        self._clock = clock
        self._local = _LOCAL | {name.rstrip(".").lower() for name in host_names}
        self._forward = forward
        self._cold = cold if cold is not None else TokenBucket(COLD_RATE, COLD_BURST)
        # All but the id -> all but the id. A door that counts in the tally, as `answer` does, may look here itself.
        self.replies: dict[bytes, tuple[bytes, Tally]] = {}
        self._ledger = FoldedQueries(note, self._lapsed, later)
        pool.on_evict = self.replies.clear

    def answer(
        self,
        data: bytes,
        transport: str,
        source: Any = None,
        destination: Any = None,
        respond: Respond | None = None,
    ) -> bytes | None:
        """The reply to *data*, or None: nothing is said, or *respond(reply, source, destination)* says it later."""
        known = self.replies.get(data[2:])
        if known is not None:
            known[1].count += 1
            return data[:2] + known[0]
        query = wire.parse_query(data)
        if type(query) is wire.Fault:
            return self._fault(query)
        assert type(query) is wire.Query
        if not self._cold.take(self._clock()):
            return self._limited(query)
        outcome = self._weigh(query)
        tally = self._ledger.record((outcome.host, query.qtype, outcome.allowed, outcome.reason, outcome.rule))
        if tally is None:
            return wire.servfail(query)
        if outcome.reply is None:
            return self._pass_on(query, transport, source, destination, respond)
        if outcome.reason != INTERNAL and len(data) <= KEY_MAX:
            self._keep(data[2:], outcome.reply[2:], tally)
        return outcome.reply

    def flush(self) -> None:
        """Write the counts that are still folded; the launcher calls this when the session ends."""
        self._ledger.flush()

    def _weigh(self, query: wire.Query) -> Outcome:
        try:
            if not query.clean:  # the policy never sees it
                return self._denied(query, query.name.decode("ascii"), BAD_NAME, None)
            if query.qtype == wire.PTR and query.labels[-1].lower() == b"arpa":
                return self._pointer(query)
            return self._named(query, self._judge(query.name, query.qtype))
        except Exception:  # a judge that fails has not said yes
            host = query.name.decode("ascii").lower()
            return Outcome(host, allowed=False, reason=INTERNAL, rule=None, reply=wire.servfail(query))

    def _named(self, query: wire.Query, judged: Judgement) -> Outcome:
        host = judged.host
        if judged.loopback or host in self._local or host.endswith(".localhost"):
            return self._loopback(query, host)
        if not judged.allowed:
            return self._denied(query, host, judged.reason, judged.rule)
        if judged.wildcard is not None:
            reason = self._guard.admit(host, judged.wildcard, self._clock())
            if reason is not None:
                return self._denied(query, host, reason, judged.rule)
        reply: bytes | None
        if query.qtype == wire.A:
            reply = wire.address_answer(query, self._pool.address_of(host), TTL)
        elif query.qtype in (wire.AAAA, wire.HTTPS, wire.SVCB):
            reply = wire.nodata(query)
        elif judged.forward and self._forward is not None:
            reply = None
        else:
            reply = wire.refused(query, f"netsandbox: {QUERY_TYPE}")
            return Outcome(host, allowed=False, reason=QUERY_TYPE, rule=judged.rule, reply=reply)
        return Outcome(host, allowed=True, reason=judged.reason, rule=judged.rule, reply=reply)

    def _loopback(self, query: wire.Query, host: str) -> Outcome:
        if query.qtype == wire.A:
            reply = wire.address_answer(query, _FOUR, TTL)
        elif query.qtype == wire.AAAA:
            reply = wire.address_answer(query, _SIX, TTL)
        else:
            reply = wire.nodata(query)
        return Outcome(host, allowed=True, reason=LOOPBACK, rule=None, reply=reply)

    def _denied(self, query: wire.Query, host: str, reason: str, rule: str | None) -> Outcome:
        reply = wire.nxdomain(query, f"netsandbox: {reason}")
        return Outcome(host, allowed=False, reason=reason, rule=rule, reply=reply)

    def _pointer(self, query: wire.Query) -> Outcome:
        """Addresses the session was given have names; of all others it learns nothing, and nobody is asked."""
        host = query.name.decode("ascii").lower()
        packed = _reversed(query.labels)
        if packed is not None and packed[0] == 127:
            reply = wire.pointer_answer(query, "localhost", TTL)
            return Outcome(host, allowed=True, reason=LOOPBACK, rule=None, reply=reply)
        name = self._pool.name_of_packed(packed) if packed is not None else None
        if name is None:
            return self._denied(query, host, NOT_ALLOWED, None)
        return Outcome(host, allowed=True, reason=RULE, rule=None, reply=wire.pointer_answer(query, name, TTL))

    def _pass_on(
        self, query: wire.Query, transport: str, source: Any, destination: Any, respond: Respond | None
    ) -> bytes | None:
        if respond is None or self._forward is None:
            return wire.servfail(query)
        say = respond

        def arrived(reply: bytes | None) -> None:
            if reply is None:
                reply = wire.servfail(query)
            elif transport == "udp" and len(reply) > query.udp_size:
                reply = wire.truncated(query)
            say(reply, source, destination)

        try:
            self._forward(query, arrived)
        except Exception:
            return wire.servfail(query)
        return None

    def _fault(self, fault: wire.Fault) -> bytes | None:
        # All malformed messages are one kind: their bytes are the attacker's, and so would be the number of records.
        if self._ledger.record(("", 0, False, fault.reason, None)) is None:
            return None
        return wire.fault_answer(fault)

    def _limited(self, query: wire.Query) -> bytes:
        tally = self._ledger.record(("", 0, False, LIMIT, None))
        return wire.servfail(query) if tally is None else wire.refused(query, f"netsandbox: {LIMIT}")

    def _keep(self, key: bytes, reply: bytes, tally: Tally) -> None:
        if len(self.replies) >= REPLIES_MAX:
            for stalest in list(self.replies)[: REPLIES_MAX // 2]:
                del self.replies[stalest]
        self.replies[key] = (reply, tally)

    def _lapsed(self) -> None:
        """Some windows closed: their replies go. While the log fails all go, so each question meets the log itself."""
        ledger = self._ledger
        stale = [key for key, known in self.replies.items() if ledger.broken or not ledger.is_open(known[1])]
        for key in stale:
            del self.replies[key]


def _reversed(labels: tuple[bytes, ...]) -> bytes | None:
    """The four bytes that d.c.b.a.in-addr.arpa asks about, if it is spelled the one proper way."""
    if len(labels) != 6 or tuple(label.lower() for label in labels[4:]) != _ARPA:
        return None
    digits = [label for label in labels[3::-1] if label.isdigit() and len(label) <= 3 and int(label) < 256]
    if len(digits) != 4 or any(label != b"%d" % int(label) for label in digits):
        return None
    return bytes(int(label) for label in digits)
