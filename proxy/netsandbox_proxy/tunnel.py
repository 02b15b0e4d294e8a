"""A stage that asks the gate, dials, answers the client and has its first flight judged.

CONNECT, SOCKS5 and transparent connections all come here and differ only in their `ReplyStyle`. What the client sends
early is held, in bounds, and goes nowhere before the grant, the connection and the judgement of the first flight
(INV-5).
"""

from __future__ import annotations

from netsandbox.runtime.loop import IN
from netsandbox.runtime.relay import Relay
from netsandbox.runtime.stream import MAX_BUFFER
from netsandbox_proxy import active_grant as outcomes
from netsandbox_proxy.contract import Refusal
from netsandbox_proxy.dial import Dial
from netsandbox_proxy.final_reply import FinalReply
from netsandbox_proxy.relay_stage import Idle, RelayStage
from netsandbox_proxy.sniff import HTTP, PASSING, FirstFlight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.active_grant import ActiveGrant
    from netsandbox_proxy.flow import Flow
    from netsandbox_proxy.reply_style import ReplyStyle

HINTS = {
    "unreachable": "The destination did not answer.",
    "audit-unwritable": "The audit record could not be written, so nothing was dialled.",
}


class Tunnel:
    """`begin` starts it; from then on it answers to the flow."""

    __slots__ = ("_dial", "_early", "_ended", "_flight", "_flow", "_idle", "_manner", "_passage", "_relay", "_server")

    def __init__(self, flow: Flow, manner: ReplyStyle, early: bytes = b"", *, client_ended: bool = False) -> None:
        self._flow = flow
        self._manner = manner
        self._early = early
        self._ended = client_ended  # it has said its last
        self._passage: ActiveGrant | None = None
        self._dial: Dial | None = None
        self._server: Stream | None = None
        self._relay: Relay | None = None
        self._flight: FirstFlight | None = None
        self._idle: Idle | None = None

    def begin(self, host: bytes, port: int, address: str | None = None) -> None:
        flow = self._flow
        flow.stage = self
        flow.client.on_ready = self._on_early
        flow.client.want(0 if self._ended else IN)
        flow.ask(self, self._manner.door, host, port, address)

    def expired(self, now: float) -> None:
        if self._dial is not None:
            self._flow.deadline = now + self._flow.door.limits.connect
            return self._dial.expired()
        return self._late_flight(now)

    def close(self, outcome: str) -> None:
        up = down = 0
        if self._dial is not None:
            self._dial.close()
        if self._relay is not None:
            up, down = self._relay.up.moved, self._relay.down.moved
            self._relay.close()
        if self._server is not None:
            self._server.abort()
        if self._passage is not None:
            self._passage.end(up, down, outcome)

    # Before the way is open

    def granted(self, passage: ActiveGrant) -> None:
        flow, door = self._flow, self._flow.door
        self._passage = passage
        flow.deadline = passage.started + door.limits.connect
        self._dial = Dial(door.loop, door.gate, passage.grant, self._connected, self._unreachable)
        self._dial.start()

    def refused(self, refusal: Refusal) -> None:
        words = self._manner.refused(refusal)
        if words:
            FinalReply(self._flow, words).start()
        else:
            self._flow.fail(outcomes.REFUSED)

    def _unreachable(self, reason: str) -> None:
        passage = self._passage
        assert passage is not None
        self._dial = None
        passage.end(0, 0, outcomes.UNREACHABLE if reason == outcomes.UNREACHABLE else outcomes.UNRECORDED)
        self.refused(Refusal(passage.grant.host, passage.grant.port, reason, HINTS[reason]))

    def _on_early(self, events: int) -> None:
        """The client speaks, or leaves, before it was answered."""
        client = self._flow.client
        data = client.read(MAX_BUFFER)
        if data is None:
            return
        self._early += data
        if data and len(self._early) < MAX_BUFFER:
            return
        client.want(0)
        self._ended = not data
        if self._ended and not self._early and self._manner.accepted:
            self._flow.close(outcomes.ABANDONED)  # it waited for our answer and waits no more

    # The way is open

    def _connected(self, server: Stream, address: str, leftover: bytes) -> None:
        flow, passage = self._flow, self._passage
        assert passage is not None
        server.on_failure = flow.fail
        self._server = server
        self._dial = None
        passage.address = address
        accepted = self._manner.accepted
        if accepted and flow.client.send(accepted) != len(accepted):
            return flow.fail()
        if passage.grant.named:
            return self._await_flight(passage, server, leftover)
        relay = self._relay = Relay(flow.client, server, flow.door.pipes)
        self._pass_through(relay, outcomes.OPAQUE)  # an address was allowed, so there is no name to compare
        return relay.start(self._early, leftover, client_ended=self._ended)

    def _await_flight(self, passage: ActiveGrant, server: Stream, leftover: bytes) -> None:
        flow = self._flow
        flow.deadline = flow.door.loop.now() + flow.door.limits.handshake
        self._flight = FirstFlight(passage.grant.host)
        self._relay = Relay(flow.client, server, flow.door.pipes, self._judge)
        early, self._early = self._early, b""
        self._relay.start(down=leftover, client_muted=self._ended)
        if early:
            self._judge(early)
        if self._ended and self._flight is not None and not flow.closed:
            self._judge(b"")

    def _judge(self, data: bytes) -> None:
        flight, relay = self._flight, self._relay
        assert flight is not None
        assert relay is not None
        word = flight.feed(data)
        if word is None:
            return None
        self._flight = None
        if word not in PASSING:
            return self._deny(word)
        if word == HTTP:
            if not relay.down.moved and not relay.down.blocked:
                return self._hand_over(flight.held)
            word = outcomes.OPAQUE  # the server spoke first (SMTP, FTP, IMAP): a word and a space is no HTTP request
        self._pass_through(relay, word)
        return relay.release(flight.held, client_ended=self._ended or not data)

    def _pass_through(self, relay: Relay, word: str) -> None:
        passage, server = self._passage, self._server
        assert passage is not None
        assert server is not None
        RelayStage(self._flow, passage, server, relay, word)

    def _hand_over(self, held: bytes) -> None:
        from netsandbox_proxy.pinned_http import PinnedHttp

        passage, server = self._passage, self._server
        assert passage is not None
        assert server is not None
        PinnedHttp(self._flow, passage, server).begin(held, client_ended=self._ended)

    def _deny(self, reason: str) -> None:
        assert self._passage is not None
        self._flow.door.gate.refuse(self._passage.grant, reason)
        self._flow.fail(outcomes.REFUSED)

    def _late_flight(self, now: float) -> None:
        """Half a flight is a refusal; none at all is allowed while the server speaks."""
        flow, relay, flight = self._flow, self._relay, self._flight
        assert relay is not None
        assert flight is not None
        if flight.held:
            return self._deny("deadline")
        moved = relay.down.moved
        if self._idle is None:
            self._idle = Idle(now, moved)
        if not moved or self._idle.over(now, moved, flow.door.limits.idle):
            return flow.fail(outcomes.DEADLINE)
        flow.deadline = now + flow.door.limits.handshake
        return None
