"""The HTTP requests of one connection by name: each is rewritten for the server, and each response for the client.

Rules: one request at a time, and bytes behind it wait, in bounds; every request of the connection names the same host
as the first (RFC 9112, 9.3); what two parsers could read differently is refused; after an upgrade bytes pass unread.

Clients repeat their heads exactly, and so do servers within a second. A request and a response whose heads were read
before, and that came whole, pass without an `Exchange`: that is most of the cost of a request.
"""

from __future__ import annotations

from netsandbox.runtime.http.body import NO_BODY
from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.exchange import Exchange
from netsandbox.runtime.http.head import HeadReader
from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.stream import Stream
from netsandbox_portmap.request_host import MAX_HEAD, MAX_LINE, check_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Protocol

    from netsandbox.runtime.http.head import RequestHead
    from netsandbox.runtime.http.request import ForwardRequest
    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox.runtime.pump import PipePool
    from netsandbox_portmap.name_rewrite import NamedServer
else:
    Protocol = object

HEAD_DEADLINE = 10.0


class Owner(Protocol):
    """The owner of the two sockets. Each method ends the `NamedHttp`, which watches no socket any more."""

    def upgraded(self, up: bytes, down: bytes) -> None:
        """From now on bytes pass unread; *up* and *down* go first."""

    def finished(self) -> None:
        """The client has the last response."""

    def refused(self, error: ProtocolError) -> None:
        """Nothing of a response was sent; the client gets the error."""

    def cut(self) -> None:
        """The server closed instead of a first response."""

    def failed(self) -> None:
        """The client must not take what it got for the whole."""


class NamedHttp:
    """`begin` with the first head; then until `close` or a call of the owner."""

    __slots__ = (
        "_buffer",
        "_client",
        "_ended",
        "_exchange",
        "_last",
        "_loop",
        "_moved",
        "_named",
        "_owner",
        "_pending",
        "_pipes",
        "_reader",
        "_served",
        "_server",
        "_timer",
    )

    def __init__(
        self,
        loop: Loop,
        sockets: tuple[_socket.socket, _socket.socket],
        named: NamedServer,
        pipes: PipePool,
        owner: Owner,
    ) -> None:
        self._loop = loop
        self._client = Stream(loop, sockets[0], self._on_client)
        self._server = Stream(loop, sockets[1], self._on_server)
        self._client.on_failure = self._server.on_failure = self._fail
        self._named = named
        self._pipes = pipes
        self._owner: Owner | None = owner
        self._buffer = b""
        self._reader: HeadReader | None = None
        self._exchange: Exchange | None = None
        self._pending: ForwardRequest | None = None  # a repeated request that was sent, and has no exchange yet
        self._timer: Timer | None = None
        self._last = (b"", b"")  # the last head of a response, and what became of it
        self._ended = False  # the client sends no more
        self._served = 0
        self._moved = 0

    @property
    def moved(self) -> int:
        exchange = self._exchange
        return self._moved + (exchange.up + exchange.down if exchange is not None else 0)

    def begin(self, head: RequestHead, rest: bytes) -> None:
        self._buffer = rest
        known = self._named.requests.get(head.raw) if not rest else None
        if known is None:
            return self._request(head)
        self._repeat(known)
        return None if self._pending is None else self._settle()

    def close(self) -> None:
        """Watch nothing any more; the sockets stay open."""
        if self._owner is not None:
            self._release()

    # Repeated heads

    def _on_client(self, events: int) -> None:
        if events != IN or self._exchange is not None or self._reader is not None:
            return self._on_client_events(events)
        try:
            data = self._client.recv(self._pipes.buffer)
        except BlockingIOError:
            return None
        known = self._named.requests.get(data)
        if known is None or self._pending is not None:
            return self._took(data)
        return self._repeat(known)

    def _repeat(self, known: ForwardRequest) -> None:
        try:
            sent = self._server.send(known.head_bytes)
        except OSError:  # the server did not wait for another request; the client sends it again
            return self._finish()
        self._pending = known
        self._moved += sent
        if sent < len(known.head_bytes):
            self._promote(known).to_server = known.head_bytes[sent:]
            self._settle()
        return None

    def _on_server(self, events: int) -> None:
        pending = self._pending
        if pending is None or events != IN:
            return self._on_server_events(events)
        try:
            data = self._server.recv(self._pipes.buffer)
        except BlockingIOError:
            return None
        end = data.find(b"\r\n\r\n") + 4
        known = self._named.responses.get(data[:end])
        if known is None or len(data) != end + known[1]:
            exchange = self._promote(pending)
            exchange.take_answer(data)
            return self._after(exchange)
        answer = known[0] + data[end:]
        sent = self._client.send(answer)
        self._moved += sent
        self._served += 1
        self._pending = None
        if sent < len(answer):
            exchange = self._promote(pending)
            exchange.response.done, exchange.response.keep_alive = True, known[2]
            exchange.to_client = answer[sent:]
            return self._settle()
        return None if known[2] and pending.keep_alive else self._finish()

    def _promote(self, pending: ForwardRequest) -> Exchange:
        """Follow a request that was sent by an exchange."""
        self._pending = None
        self._exchange = Exchange(self._client, self._server, pending, self._pipes, self._rewrite)
        return self._exchange

    # The client

    def _on_client_events(self, events: int) -> None:
        if self._pending is not None:
            self._promote(self._pending)
        exchange = self._exchange
        if events & OUT and exchange is not None:
            exchange.flush_down()
            self._after(exchange)
        if events & ~OUT and self._client.events & IN:
            data = self._client.read(self._pipes.buffer)
            if data is not None:
                self._took(data)

    def _took(self, data: bytes) -> None:
        if self._pending is not None:
            self._promote(self._pending)
        if not data:
            return self._client_ended()
        exchange = self._exchange
        if exchange is None:
            return self._read_head(data)
        if not exchange.body.done:
            try:
                self._buffer += exchange.feed_body(data)
            except ProtocolError as error:
                return self._refuse(error)
        else:
            self._buffer += data
        return self._settle()

    def _client_ended(self) -> None:
        self._ended = True
        exchange = self._exchange
        if exchange is None:
            self._finish()
        elif exchange.body.done:
            self._settle()
        else:
            self._fail()

    def _read_head(self, data: bytes) -> None:
        if self._reader is None:
            self._reader = HeadReader(MAX_LINE, MAX_HEAD)
            self._timer = self._loop.call_later(HEAD_DEADLINE, self._late)
        try:
            found = self._reader.feed(data)
        except ProtocolError as error:
            return self._refuse(error)
        if found is None:
            return self._finish() if self._ended else self._settle()
        self._stop_waiting()
        head, self._buffer = found
        return self._request(head)

    def _request(self, head: RequestHead) -> None:
        named = self._named
        try:
            if (head.host or b"").lower() != named.host:
                raise ProtocolError("host-mismatch", "another Host than the first of this connection", 421)
            check_target(head)
            request = named.request(head)
        except ProtocolError as error:
            return self._refuse(error)
        if request.method == b"GET" and request.framing is NO_BODY and not request.upgrade:
            named.requests.add(head.raw, request)
        return self._start(request)

    # The exchange

    def _start(self, request: ForwardRequest) -> None:
        exchange = self._exchange = Exchange(self._client, self._server, request, self._pipes, self._rewrite)
        try:
            self._buffer = exchange.start(self._buffer)
        except ProtocolError as error:
            return self._refuse(error)
        if self._ended and not exchange.body.done:
            return self._fail()
        return self._settle()

    def _rewrite(self, lines: list[bytes], raw: bytes) -> bytes:
        changed = self._named.response(lines, raw)
        self._last = (raw, changed)
        return changed

    def _on_server_events(self, events: int) -> None:
        if self._pending is not None:
            self._promote(self._pending)
        exchange = self._exchange
        if exchange is None:  # between two requests a server can only close; bytes would be stray
            return None if self._server.read(1) is None else self._finish()
        if events & OUT:
            exchange.flush_up()
        if events & ~OUT and not exchange.behind:
            exchange.read_answer()
        return self._after(exchange)

    def _after(self, exchange: Exchange) -> None:
        if exchange.complete:
            return self._complete(exchange)
        if exchange.fault is not None:
            return self._on_fault(exchange, exchange.fault)
        if exchange.upgraded:
            up, down = exchange.to_server + self._buffer, exchange.to_client
            return self._release().upgraded(up, down)
        return self._settle()

    def _complete(self, exchange: Exchange) -> None:
        self._served += 1
        self._moved = self.moved
        exchange.close()
        self._exchange = None
        answer = exchange.response
        if answer.length is not None and exchange.request.method == b"GET" and not exchange.tainted:
            self._named.remember(*self._last, answer.length, keep_alive=answer.keep_alive)
        if not exchange.reusable:
            return self._finish()
        data, self._buffer = self._buffer, b""
        if data:
            return self._read_head(data)
        return self._finish() if self._ended else self._settle()

    def _on_fault(self, exchange: Exchange, fault: ProtocolError) -> None:
        if exchange.answered:
            return self._fail()
        if fault.reason != "unreachable":
            return self._refuse(fault)
        if self._served:  # the server did not wait for another request; the client sends it again
            return self._finish()
        return self._release().cut()

    def _settle(self) -> None:
        reading = not self._ended and len(self._buffer) < self._pipes.buffer
        if self._exchange is not None:
            self._exchange.settle(reading=reading)
        else:
            self._client.want(IN if reading else 0)
            self._server.want(IN)

    # The end

    def _late(self) -> None:
        self._refuse(ProtocolError("deadline", "the head was not complete within ten seconds", 408))

    def _refuse(self, error: ProtocolError) -> None:
        if self._exchange is not None and self._exchange.answered:
            return self._fail()
        return self._release().refused(error)

    def _finish(self) -> None:
        self._release().finished()

    def _fail(self) -> None:
        if self._owner is not None:
            self._release().failed()

    def _release(self) -> Owner:
        owner, self._owner = self._owner, None
        assert owner is not None
        self._stop_waiting()
        if self._exchange is not None:
            self._exchange.close()
        for stream in (self._client, self._server):
            stream.want(0)
            stream.on_failure = None
        return owner

    def _stop_waiting(self) -> None:
        self._reader = None
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
