"""Stages that read HTTP requests from a client, strictly one after another.

`HttpStage` is the base of two: requests of `ForwardProxy` name their own destination, requests of `PinnedHttp` may only
repeat the one that is decided. Rules: a request is acted on when its head is whole; bytes behind it wait, in bounds;
after a refusal the connection ends, so that no unread bytes can be taken for a request.
"""

from __future__ import annotations

from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.exchange import Exchange
from netsandbox.runtime.http.head import HeadReader
from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.relay import Relay
from netsandbox_proxy.contract import Outcome
from netsandbox_proxy.flow import NEVER
from netsandbox_proxy.replies import CONNECT, FinalReply, refusal_response
from netsandbox_proxy.tunnel import IDLE_CHECKS, IdleCheck, RelayStage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.head import RequestHead
    from netsandbox.runtime.http.request import ForwardRequest
    from netsandbox.runtime.stream import Stream
    from netsandbox_proxy.flow import ActiveGrant, Flow
    from netsandbox_proxy.inspect.secret_places import BodySearch
    from netsandbox_proxy.plain_request import PlainRequest


class HttpStage:
    """`_busy` is set from the end of a head to the end of its response; the next request is not parsed meanwhile."""

    __slots__ = (
        "_active",
        "_buffer",
        "_busy",
        "_ended",
        "_exchange",
        "_flow",
        "_idle",
        "_inspected",
        "_judged",
        "_reader",
        "_search",
        "_served",
        "_server",
    )

    def __init__(self, flow: Flow, active: ActiveGrant | None, server: Stream | None) -> None:
        self._flow = flow
        self._active = active
        self._server = server
        self._buffer = b""
        self._reader: HeadReader | None = None
        self._exchange: Exchange | None = None
        self._idle: IdleCheck | None = None
        self._busy = False
        self._ended = False
        self._served = 0
        self._judged = 0  # requests that the gate decided on
        self._search: BodySearch | None = None  # for placeholders of secrets, if the session has any
        self._inspected: PlainRequest | None = None  # the present one of them

    def begin(self, data: bytes, *, client_ended: bool = False) -> None:
        """Start with *data*; the flow's present deadline is that of the first head."""
        flow = self._flow
        flow.stage = self
        self._buffer = data
        self._ended = client_ended
        flow.client.on_ready = self._on_client
        if self._server is not None:
            self._server.on_ready = self._on_server
        if not self._is_repeated():
            self._reader = HeadReader()
            self._read_head()
        if not self._busy and flow.stage is self:
            self._settle()

    def expired(self, now: float) -> None:
        flow, exchange, limits = self._flow, self._exchange, self._flow.door.limits
        if exchange is None:
            return self._late_head()
        moved = exchange.up + exchange.down
        if self._idle is None:
            self._idle = IdleCheck(now, moved)
        if self._idle.over(now, moved, limits.idle):
            return flow.fail(Outcome.DEADLINE)
        flow.deadline = now + limits.idle / IDLE_CHECKS
        return None

    def close(self, outcome: str) -> None:
        self._end_inspected()
        if self._exchange is not None:
            self._exchange.close()
        if self._server is not None and outcome != Outcome.HTTP:
            self._server.abort()  # so that it does not take a part for the whole
        self._drop_server()
        self._end_grant(outcome)

    # What the two stages do differently

    def _is_repeated(self) -> bool:
        """Act on the buffer if it is a head that was parsed before, and nothing else."""
        return False

    def _request(self, head: RequestHead) -> None:
        """Act on a head, or raise ProtocolError."""
        raise NotImplementedError

    def _refuse_request(self, error: ProtocolError) -> None:
        """Record that the client broke the protocol, and reply."""
        raise NotImplementedError

    def _exchange_done(self, exchange: Exchange) -> None:
        """An exchange is complete and both connections are clean."""
        raise NotImplementedError

    def _end_grant(self, outcome: str) -> None:
        raise NotImplementedError

    def _is_judged(self, active: ActiveGrant, head: RequestHead, request: ForwardRequest) -> bool:
        """Whether the request may go on. Without rules for requests to this host, every one may."""
        if active.grant.inspection is None:
            return True
        self._judged += 1
        target = request.head_bytes.split(b" ", 2)[1].decode("ascii", "replace")
        from netsandbox.policy.inspection import HttpRequest  # for sessions with rules for requests only
        from netsandbox_proxy.inspect.request_check import is_unclear
        from netsandbox_proxy.plain_request import PlainRequest

        unclear = is_unclear(head.method, head.headers)
        asked = HttpRequest("http", head.method.decode("ascii", "replace"), target, unclear)
        refusal = self._flow.door.gate.judge(active.grant, self._judged, asked)
        inspected = PlainRequest(self._flow.door, active.grant, self._judged, head, asked)
        inspected.judged(refusal)
        if refusal is None:
            self._inspected = inspected
            return True
        reply = CONNECT.refused(refusal)
        self.close(Outcome.REFUSED)
        FinalReply(self._flow, reply).start()
        return False

    def _check_head(self, head: RequestHead) -> None:
        """Refuse a placeholder of a secret: here it would go in the clear."""
        placeholders = self._flow.door.placeholders
        fault = None if placeholders is None else placeholders.misplaced(head.target, head.headers)
        if fault is not None:
            raise ProtocolError("secret-misplaced", fault, 403)

    def _check_body(self, data: bytes) -> None:
        fault = None if self._search is None else self._search.feed(data)
        if fault is not None:
            raise ProtocolError("secret-misplaced", fault, 403)

    # The client

    def _on_client(self, events: int) -> None:
        exchange = self._exchange
        if events & OUT and exchange is not None:
            exchange.flush_down()
            self._after(exchange)
        if events & ~OUT and self._flow.stage is self and self._flow.client.events & IN:
            self._read_client()

    def _read_client(self) -> None:
        data = self._flow.client.read(self._flow.door.pipes.buffer)
        if data is None:
            return None
        if not data:
            return self._client_ended()
        exchange = self._exchange
        if exchange is not None and not exchange.body.done:
            return self._read_body(exchange, data)
        self._buffer += data
        if self._busy:
            return self._settle()
        return self._read_head()

    def _read_body(self, exchange: Exchange, data: bytes) -> None:
        try:
            self._check_body(data)
            self._buffer += exchange.feed_body(data)
        except ProtocolError as error:
            return self._bad_body(error)
        if exchange.to_server or self._buffer:
            self._settle()
        return None

    def _read_head(self) -> None:
        if self._reader is None:
            if self._is_repeated():
                return None
            self._reader = HeadReader()
            self._flow.deadline = self._flow.door.loop.now() + self._flow.door.limits.head
        data, self._buffer = self._buffer, b""
        try:
            got = self._reader.feed(data)
            if got is None:
                return self._flow.close(Outcome.HTTP) if self._ended else None
            head, self._buffer = got
            self._reader = None
            self._busy = True
            self._flow.deadline = NEVER
            self._check_head(head)
            return self._request(head)
        except ProtocolError as error:
            return self._refuse_request(error)

    def _client_ended(self) -> None:
        self._ended = True
        exchange = self._exchange
        if not self._busy:
            self._flow.close(Outcome.HTTP)
        elif exchange is not None and not exchange.body.done:
            self._flow.fail()
        else:
            self._settle()

    # The exchange

    def _start(self, request: ForwardRequest, server: Stream) -> None:
        flow = self._flow
        server.on_ready = self._on_server
        exchange = self._exchange = self._new_exchange(request, server)
        flow.deadline = flow.door.loop.now() + flow.door.limits.idle / IDLE_CHECKS
        if flow.door.placeholders is not None:
            self._search = flow.door.placeholders.body_search()
        try:
            self._check_body(self._buffer)
            self._buffer = exchange.start(self._buffer)
        except ProtocolError as error:
            return self._bad_body(error)
        if self._ended and not exchange.body.done:
            return flow.fail()
        return self._settle()

    def _new_exchange(self, request: ForwardRequest, server: Stream) -> Exchange:
        flow, active = self._flow, self._active
        assert active is not None
        rewrite = None if self._inspected is None else self._inspected.rewrite
        if active.grant.meter is None:
            return Exchange(flow.client, server, request, flow.door.pipes, rewrite)
        from netsandbox.runtime.http.metered_exchange import MeteredExchange

        return MeteredExchange(flow.client, server, request, flow.door.pipes, active.grant.meter, rewrite)

    def _on_server(self, events: int) -> None:
        exchange = self._exchange
        if exchange is None:
            return self._on_idle_server()
        if events & OUT:
            exchange.flush_up()
        if events & ~OUT and not exchange.behind:
            exchange.read_answer()
        return self._after(exchange)

    def _on_idle_server(self) -> None:
        """Between two requests a server can only close; bytes would be stray."""
        if self._server is not None and self._server.read(1) is not None:
            self._server_left()

    def _after(self, exchange: Exchange) -> None:
        if exchange.fault is not None:
            return self._bad_gateway(exchange, exchange.fault)
        if exchange.upgraded:
            return self._upgrade(exchange)
        if exchange.complete:
            return self._complete(exchange)
        return self._settle()

    def _complete(self, exchange: Exchange) -> None:
        self._served += 1
        self._end_inspected()
        if exchange.reusable:
            return self._exchange_done(exchange)
        self.close(Outcome.HTTP)
        return FinalReply(self._flow, b"").start()

    def _end_inspected(self) -> None:
        inspected, self._inspected = self._inspected, None
        if inspected is not None:
            inspected.ended(self._exchange)

    def _await_request(self) -> None:
        flow = self._flow
        self._exchange = self._idle = None
        self._busy = False
        if self._buffer:
            self._read_head()
        elif self._ended:
            return flow.close(Outcome.HTTP)
        else:
            flow.deadline = flow.door.loop.now() + flow.door.limits.keep_alive
        if not self._busy and flow.stage is self:
            self._settle()
        return None

    def _upgrade(self, exchange: Exchange) -> None:
        flow, active, server = self._flow, self._active, self._server
        assert active is not None
        assert server is not None
        self._end_inspected()
        relay = Relay(flow.client, server, flow.door.pipes, meter=active.grant.meter)
        relay.up.moved, relay.down.moved = self._totals()
        RelayStage(flow, active, server, relay, Outcome.HTTP)
        relay.start(exchange.to_server + self._buffer, exchange.to_client, client_ended=self._ended)

    def _totals(self) -> tuple[int, int]:
        exchange = self._exchange
        return (exchange.up, exchange.down) if exchange is not None else (0, 0)

    def _settle(self) -> None:
        reading = not self._ended and len(self._buffer) < self._flow.door.pipes.buffer
        if self._exchange is not None:
            self._exchange.settle(reading=reading)
        else:
            self._flow.client.want(IN if reading else 0)

    # Failures

    def _bad_body(self, error: ProtocolError) -> None:
        active, exchange = self._active, self._exchange
        assert active is not None
        self._flow.door.gate.refuse(active.grant, error.reason, error.detail)
        if exchange is not None and exchange.answered:
            return self._flow.fail(Outcome.REFUSED)
        return self._reply(active, error, Outcome.REFUSED)

    def _bad_gateway(self, exchange: Exchange, fault: ProtocolError) -> None:
        """Reply 502 before the first byte of a response, and reset after it; close where the client may simply
        retry."""
        active = self._active
        assert active is not None
        if fault.reason == "budget":
            return self._bad_body(fault)
        if exchange.answered:
            return self._flow.fail()
        if self._served and fault.reason == "unreachable":
            return self._flow.close(Outcome.RESET)
        return self._reply(active, fault, Outcome.UNREACHABLE)

    def _reply(self, active: ActiveGrant, error: ProtocolError, outcome: str) -> None:
        """Send our reply in place of the origin's, and end."""
        grant = active.grant
        reply = refusal_response(error.status, error.reason, grant.host, grant.port, error.detail)
        self.close(outcome)
        FinalReply(self._flow, reply).start()

    def _late_head(self) -> None:
        if self._reader is None:
            self._flow.close(Outcome.HTTP)
        else:
            self._refuse_request(ProtocolError("deadline", "request head not finished in time", 408))

    def _server_left(self) -> None:
        raise NotImplementedError

    def _drop_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
