"""One HTTP request and its response, with bounded buffers in both directions.

`BodyReader` follows the request's body and `ResponseReader` the response; neither passes a byte whose framing it has
not understood. A long response of known length goes by splice(2) up to its last byte and no further. A server may
respond before the body has ended; then the rest of the body is read and dropped.
"""

from __future__ import annotations

from netsandbox.runtime.http.body import NO_BODY, BodyReader
from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.response import ResponseReader
from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.pump import Pump
from netsandbox.runtime.stream import MAX_BUFFER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.request import ForwardRequest
    from netsandbox.runtime.http.response import Rewrite
    from netsandbox.runtime.pump import PipePool
    from netsandbox.runtime.stream import Stream

WITHOUT_BODY = BodyReader(NO_BODY)  # for all requests without one: it is done, and changes no more
MIN_SPLICE = 4 * MAX_BUFFER  # bytes still to come that are worth a pipe


class Exchange:
    """After each step the owner looks at `complete`, `upgraded` and `fault`, and calls `settle`."""

    __slots__ = (
        "body",
        "client",
        "down",
        "fault",
        "pipes",
        "pump",
        "request",
        "response",
        "server",
        "tainted",
        "to_client",
        "to_server",
        "up",
    )

    def __init__(
        self,
        client: Stream,
        server: Stream,
        request: ForwardRequest,
        pipes: PipePool,
        rewrite: Rewrite | None = None,
    ) -> None:
        self.client = client
        self.server = server
        self.request = request
        self.body = WITHOUT_BODY if request.framing is NO_BODY else BodyReader(request.framing)
        self.response = ResponseReader(request.method, upgrade=request.upgrade, rewrite=rewrite)
        self.pump: Pump | None = None  # for a response that goes by splice
        self.pipes = pipes
        self.to_server = b""
        self.to_client = b""
        self.up = 0
        self.down = 0
        self.tainted = False  # bytes behind the response, or a server that reads no more: not to be reused
        self.fault: ProtocolError | None = None  # what went wrong on the server's side

    @property
    def complete(self) -> bool:
        return self.response.done and not self.behind

    @property
    def behind(self) -> bool:
        """Whether the client has not yet taken what we hold for it."""
        return bool(self.to_client) or (self.pump is not None and self.pump.blocked)

    @property
    def upgraded(self) -> bool:
        return self.response.upgraded

    @property
    def answered(self) -> bool:
        """Whether the client has seen any of the response."""
        return bool(self.down or self.to_client)

    @property
    def reusable(self) -> bool:
        """Whether both connections are clean and meant to be kept."""
        return self.request.keep_alive and self.response.keep_alive and self.body.done and not self.tainted

    def start(self, early: bytes) -> bytes:
        """Send the head and the present part of the body; returns the bytes after the body."""
        forward, leftover = self.body.feed(early) if early and not self.body.done else (b"", early)
        self._push_up(self.request.head_bytes + forward)
        return leftover

    def feed_body(self, data: bytes) -> bytes:
        """Take more of the body from the client; returns the bytes after it."""
        forward, leftover = self.body.feed(data)
        if forward:
            self._push_up(forward)
        return leftover

    def flush_up(self) -> None:
        data, self.to_server = self.to_server, b""
        if data:
            self._push_up(data)

    def flush_down(self) -> None:
        data, self.to_client = self.to_client, b""
        if data:
            self._push_down(data)
        elif self.pump is not None and self.pump.blocked:
            before = self.pump.moved
            self.pump.flush()
            self.down += self.pump.moved - before

    def read_answer(self) -> None:
        """The server is readable."""
        unread = self.response.unread
        if unread >= MIN_SPLICE:
            pump = self.pump = self.pump or Pump(self.server, self.client, self.pipes)
            if not pump.copying:
                return self._splice(pump, unread)
        try:
            data = self.server.read(self.pipes.buffer)
        except OSError:
            return self._answer_cut()
        return None if data is None else self.take_answer(data)

    def take_answer(self, data: bytes) -> None:
        """Take bytes that came from the server; b"" if it closed."""
        if not data:
            return self._ended()
        try:
            forward, leftover = self.response.feed(data)
        except ProtocolError as error:
            self.fault = error
            return None
        self.tainted = self.tainted or bool(leftover)
        if forward:
            self._push_down(forward)
        return None

    def settle(self, *, reading: bool) -> None:
        """Ask the loop for what can be used; *reading*: the owner has room for the client's bytes."""
        listen = reading and not self.to_server
        behind = self.behind
        self.client.want((IN if listen else 0) | (OUT if behind else 0))
        self.server.want((0 if behind else IN) | (OUT if self.to_server else 0))

    def close(self) -> None:
        if self.pump is not None:
            self.pump.close()

    def _splice(self, pump: Pump, unread: int) -> None:
        before = pump.moved
        taken = pump.splice(unread)
        self.down += pump.moved - before
        self.response.passed(taken)
        if pump.eof:
            self._ended()

    def _push_up(self, data: bytes) -> None:
        if self.tainted:
            return
        try:
            sent = self.server.send(data)
        except OSError:  # it reads no more; its response may still be on the way
            self.tainted = True
            return
        self.up += sent
        self.to_server = data[sent:]

    def _push_down(self, data: bytes) -> None:
        sent = self.client.send(data)
        self.down += sent
        if sent < len(data):
            self.to_client = data[sent:]

    def _ended(self) -> None:
        self.tainted = True
        if self.response.close_delimited:
            self.response.done = True
        else:
            self._answer_cut()

    def _answer_cut(self) -> None:
        self.fault = ProtocolError("unreachable", "origin: closed before the answer was complete", 502)
