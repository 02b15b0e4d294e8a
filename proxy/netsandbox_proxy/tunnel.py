"""A stage that requests a grant, dials, replies to the client and has its first bytes checked.

CONNECT, SOCKS5 and transparent connections all come here and differ only in their `ReplyStyle`. Early bytes of the
client are held, in bounds, until there are a grant, a connection and a verdict on the first bytes (INV-5).
"""

from __future__ import annotations

from netsandbox.runtime.loop import IN
from netsandbox.runtime.relay import Relay
from netsandbox_proxy.contract import Outcome, Refusal
from netsandbox_proxy.dial import Dial
from netsandbox_proxy.parsers.sniff import HTTP, PASSING, TLS, Sniffer
from netsandbox_proxy.replies import FinalReply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.flow import ActiveGrant, Flow
    from netsandbox_proxy.replies import ReplyStyle

IDLE_CHECKS = 4  # per idle time; the sweep compares byte counts, so that no byte needs the clock
HINTS = {
    "unreachable": "The destination did not answer.",
    "audit-unwritable": "The audit record could not be written, so nothing was dialled.",
}


class Tunnel:
    """`begin` starts it; then the flow owns it."""

    __slots__ = ("_active", "_dial", "_early", "_ended", "_flow", "_idle", "_relay", "_server", "_sniffer", "_style")

    def __init__(self, flow: Flow, style: ReplyStyle, early: bytes = b"", *, client_ended: bool = False) -> None:
        self._flow = flow
        self._style = style
        self._early = early
        self._ended = client_ended  # it has half-closed its side
        self._active: ActiveGrant | None = None
        self._dial: Dial | None = None
        self._server: Stream | None = None
        self._relay: Relay | None = None
        self._sniffer: Sniffer | None = None
        self._idle: IdleCheck | None = None

    def begin(self, host: bytes, port: int, address: str | None = None) -> None:
        flow = self._flow
        flow.stage = self
        flow.client.on_ready = self._on_early
        flow.client.want(0 if self._ended else IN)
        flow.request_grant(self, self._style.door, host, port, address)

    def expired(self, now: float) -> None:
        if self._dial is not None:
            self._flow.deadline = now + self._flow.door.limits.connect
            return self._dial.expired()
        return self._sniffing_late(now)

    def close(self, outcome: str) -> None:
        up = down = 0
        if self._dial is not None:
            self._dial.close()
        if self._relay is not None:
            up, down = self._relay.up.moved, self._relay.down.moved
            self._relay.close()
        if self._server is not None:
            self._server.abort()
        if self._active is not None:
            self._active.end(up, down, outcome)

    # Before the connection

    def granted(self, active: ActiveGrant) -> None:
        flow, door = self._flow, self._flow.door
        self._active = active
        flow.deadline = active.started + door.limits.connect
        self._dial = Dial(door.loop, door.gate, active.grant, self._connected, self._unreachable)
        self._dial.start()

    def refused(self, refusal: Refusal) -> None:
        reply = self._style.refused(refusal)
        if reply:
            FinalReply(self._flow, reply).start()
        else:
            self._flow.fail(Outcome.REFUSED)

    def _unreachable(self, reason: str) -> None:
        active = self._active
        assert active is not None
        self._dial = None
        active.end(0, 0, Outcome.UNREACHABLE if reason == Outcome.UNREACHABLE else Outcome.UNRECORDED)
        self.refused(Refusal(active.grant.host, active.grant.port, reason, HINTS[reason]))

    def _on_early(self, events: int) -> None:
        """The client sends, or leaves, before it got our reply."""
        client, buffer = self._flow.client, self._flow.door.pipes.buffer
        data = client.read(buffer)
        if data is None:
            return
        self._early += data
        if data and len(self._early) < buffer:
            return
        client.want(0)
        self._ended = not data
        if self._ended and not self._early and self._style.accepted:
            self._flow.close(Outcome.ABANDONED)  # it waited for our reply and left

    # Connected

    def _connected(self, server: Stream, address: str, leftover: bytes) -> None:
        flow, active = self._flow, self._active
        assert active is not None
        server.on_failure = flow.fail
        self._server = server
        self._dial = None
        active.address = address
        accepted = self._style.accepted
        if accepted and flow.client.send(accepted) != len(accepted):
            return flow.fail()
        if active.grant.named:
            return self._start_sniffing(active, server, leftover)
        relay = self._relay = Relay(flow.client, server, flow.door.pipes, meter=active.grant.meter)
        self._start_relay_stage(relay, Outcome.OPAQUE)  # an address was allowed, so there is no name to compare
        return relay.start(self._early, leftover, client_ended=self._ended)

    def _start_sniffing(self, active: ActiveGrant, server: Stream, leftover: bytes) -> None:
        flow = self._flow
        flow.deadline = flow.door.loop.now() + flow.door.limits.handshake
        self._sniffer = Sniffer(active.grant.host)
        self._relay = Relay(flow.client, server, flow.door.pipes, self._inspect, active.grant.meter)
        self._relay.on_spent = lambda: flow.exceed(active)
        early, self._early = self._early, b""
        self._relay.start(down=leftover, client_muted=self._ended)
        if early and not flow.closed:
            self._inspect(early)
        if self._ended and self._sniffer is not None and not flow.closed:
            self._inspect(b"")

    def _inspect(self, data: bytes) -> None:
        sniffer, relay = self._sniffer, self._relay
        assert sniffer is not None
        assert relay is not None
        verdict = sniffer.feed(data)
        if verdict is None:
            return None
        self._sniffer = None
        if verdict not in PASSING:
            return self._deny(verdict)
        assert self._active is not None
        if self._active.grant.inspection is not None and verdict != HTTP:
            return self._start_inspection(relay, verdict, sniffer.held)
        if verdict == HTTP:
            if not relay.down.moved and not relay.down.blocked:
                relay.close()  # its reference to this stage would be a cycle
                return self._start_http(sniffer.held)
            if self._active.grant.inspection is not None:
                return self._deny("not-http")
            verdict = Outcome.OPAQUE  # the server sent first (SMTP, FTP, IMAP), so this is not HTTP request
        self._start_relay_stage(relay, verdict)
        return relay.release(sniffer.held, client_ended=self._ended or not data)

    def _start_inspection(self, relay: Relay, verdict: str, held: bytes) -> None:
        """Pass TLS to the engine. Anything else, or a server that spoke first, is no HTTP and is refused."""
        flow, active, server = self._flow, self._active, self._server
        assert active is not None
        assert server is not None
        if verdict != TLS or relay.down.moved or relay.down.blocked:
            return self._deny("not-http")
        relay.close()
        if flow.door.engine is None or self._ended:
            return self._deny("inspection")
        from netsandbox_proxy.inspect_stage import InspectStage

        return InspectStage(flow, active, server, flow.door.engine).begin(held)

    def _start_relay_stage(self, relay: Relay, outcome: str) -> None:
        active, server = self._active, self._server
        assert active is not None
        assert server is not None
        RelayStage(self._flow, active, server, relay, outcome)

    def _start_http(self, held: bytes) -> None:
        from netsandbox_proxy.pinned_http import PinnedHttp

        active, server = self._active, self._server
        assert active is not None
        assert server is not None
        PinnedHttp(self._flow, active, server).begin(held, client_ended=self._ended)

    def _deny(self, reason: str) -> None:
        assert self._active is not None
        self._flow.door.gate.refuse(self._active.grant, reason)
        self._flow.fail(Outcome.REFUSED)

    def _sniffing_late(self, now: float) -> None:
        """Half a first message is refused; none at all is allowed while the server sends."""
        flow, relay, sniffer = self._flow, self._relay, self._sniffer
        assert relay is not None
        assert sniffer is not None
        if sniffer.held:
            return self._deny("deadline")
        moved = relay.down.moved
        if self._idle is None:
            self._idle = IdleCheck(now, moved)
        if not moved or self._idle.over(now, moved, flow.door.limits.idle):
            return flow.fail(Outcome.DEADLINE)
        flow.deadline = now + flow.door.limits.handshake
        return None


class IdleCheck:
    """Distinguishes an idle connection from a slow one by its byte count."""

    __slots__ = ("_moved", "_since")

    def __init__(self, now: float, moved: int = 0) -> None:
        self._moved = moved
        self._since = now

    def over(self, now: float, moved: int, idle_time: float) -> bool:
        if moved != self._moved:
            self._moved = moved
            self._since = now
        return now - self._since >= idle_time


class RelayStage:
    """A relay that nobody inspects: bytes pass until both sides have ended, or both are idle."""

    __slots__ = ("_active", "_flow", "_idle", "_outcome", "_relay", "_server")

    def __init__(self, flow: Flow, active: ActiveGrant, server: Stream, relay: Relay, outcome: str) -> None:
        self._flow = flow
        self._active = active
        self._server = server
        self._relay = relay
        self._outcome = outcome  # of the audit record, if both sides end normally
        self._idle: IdleCheck | None = None
        relay.on_end = self._ended
        relay.on_spent = lambda: flow.exceed(active)
        flow.stage = self
        flow.deadline = flow.door.loop.now() + flow.door.limits.handshake

    def expired(self, now: float) -> None:
        flow, limits = self._flow, self._flow.door.limits
        moved = self._relay.moved
        if self._idle is None:
            self._idle = IdleCheck(now, moved)
        if not moved or self._idle.over(now, moved, limits.idle):
            return flow.fail(Outcome.DEADLINE)
        flow.deadline = now + limits.idle / IDLE_CHECKS
        return None

    def close(self, outcome: str) -> None:
        self._relay.close()
        if outcome == self._outcome:
            self._server.close()
        else:
            self._server.abort()
        self._active.end(self._relay.up.moved, self._relay.down.moved, outcome)

    def _ended(self) -> None:
        self._flow.close(self._outcome)
