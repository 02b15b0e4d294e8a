"""One inspected connection without TLS and without sockets, for fuzzing: bytes go in. What would go to the server is
read by another parser (h11), which must find the requests that were asked about and allowed, and no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import h11
from mitmproxy.proxy import events
from mitmproxy.proxy.layers import http
from netsandbox_proxy.inspect import layers
from netsandbox_proxy.inspect.inspected import Inspected
from netsandbox_proxy.inspect.request_check import Refused
from netsandbox_proxy.inspect.tls_contexts import TlsContexts

from netsandbox.runtime.loop import IN

layers.install()
HOST, PORT = "allowed.test", 443
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
MAX_ROUNDS = 50


class MemoryStream:
    """What `Inspected` uses of a stream."""

    def __init__(self) -> None:
        self.closed = False
        self.events = 0
        self.pending: list[bytes] = []
        self.sent = bytearray()
        self.answered = 0
        self.sock = SimpleNamespace(shutdown=lambda how: None)
        self.on_ready: Any = None
        self.on_failure: Any = None

    def read(self, size: int) -> bytes | None:
        return self.pending.pop(0) if self.pending else None

    def send(self, data: bytes) -> int:
        self.sent += data
        return len(data)

    def want(self, wanted: int) -> None:
        self.events = wanted

    def shut(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class ClearInspected:
    """*protocol* is the client's; the server speaks HTTP/1."""

    def __init__(self, protocol: bytes, answer: bytes = ANSWER, contexts: Any = None) -> None:
        self.loop = SimpleNamespace(now=lambda: 0.0, call_later=lambda delay, call: None)
        self.contexts, self.captured = contexts, None
        self.allowed: list[tuple[str, str]] = []
        self.refusals: list[str] = []
        self.faults: list[Exception] = []
        self._answer = answer
        self._asks: list[dict[str, Any]] = []
        self._dials: list[int] = []
        self.client, server = MemoryStream(), MemoryStream()
        self.servers = [server]
        streams: Any = (self.client, server)
        made = self._inspected = Inspected(self, 1, (HOST, PORT), streams, None, metered=False)
        self._prepare(made, protocol)
        made.feed(events.Start())
        made._settle()

    def _prepare(self, made: Inspected, protocol: bytes) -> None:
        """Leave the layers of TLS out."""
        made._protocol = protocol
        context = made.context
        context.client.alpn, context.server.alpn = protocol, b"http/1.1"
        context.client.tls = context.server.tls = False  # the same for connections that are made later
        made._http = made._top = http.HttpLayer(context, http.HTTPMode.transparent)

    # What the worker would be

    def tell(self, message: dict[str, Any]) -> None:
        if message["kind"] == "ask":
            self._asks.append(message)
        elif message["kind"] == "dial":
            self._dials.append(message["n"])
        elif message["kind"] == "refused":
            self.refusals.append(message["detail"])

    def fault(self, connection: Any, error: Exception) -> None:
        self.faults.append(error)

    def ended(self, connection: Any, up: int, down: int, outcome: str) -> None:
        pass

    # The exchange

    def receive(self, *parts: bytes) -> None:
        """Bytes of the client. The server answers each request that it sees."""
        made = self._inspected
        self.client.pending += parts
        for _ in range(MAX_ROUNDS):
            if made.closed or not self._step():
                return

    def _step(self) -> bool:
        made = self._inspected
        if self._asks:
            ask = self._asks.pop(0)
            if ask["target"].startswith("/ok"):
                self.allowed.append((ask["method"], ask["target"]))
                made.judged(ask["n"], {"allow": True})
            else:
                made.judged(ask["n"], {"allow": False, "status": 403, "reason": "request-denied", "text": "no"})
        elif self._dials:
            self.servers.append(MemoryStream())
            stream: Any = self.servers[-1]
            made.dialled(self._dials.pop(0), stream)
        elif any(self._answers(stream) for stream in self.servers):
            pass
        elif self.client.pending and self.client.events & IN:
            self.client.on_ready(IN)
        else:
            return False
        return True

    def _answers(self, stream: MemoryStream) -> bool:
        if not self._answer or stream.closed or not stream.events & IN:
            return False
        if stream.answered >= sum(is_whole for _, _, is_whole in requests_in(bytes(stream.sent))):
            return False
        stream.answered += 1
        stream.pending.append(self._answer)
        stream.on_ready(IN)
        return True

    def check(self) -> None:
        """The server got what was allowed, and nothing else."""
        got = [request for stream in self.servers for request in requests_in(bytes(stream.sent))]
        assert [each[:2] for each in got] == self.allowed[: len(got)], (got, self.allowed)
        for error in self.faults:
            if not isinstance(error, Refused):
                raise error


class SecuredInspected(ClearInspected):
    """The same with TLS, up to the hello to the server, who does not answer."""

    def __init__(self, contexts: TlsContexts) -> None:
        super().__init__(b"", b"", contexts)

    def _prepare(self, made: Inspected, protocol: bytes) -> None:
        pass

    def check(self) -> None:
        assert self.allowed == []
        for stream in self.servers:
            sent = bytes(stream.sent)
            assert not sent or (sent[:2] == b"\x16\x03" and HOST.encode() in sent), sent
        for error in self.faults:
            if not isinstance(error, Refused):
                raise error


def _plain(authority: bytes) -> str:
    return authority.decode().lower().removesuffix(f":{PORT}").removesuffix(".")


def requests_in(data: bytes) -> list[tuple[str, str, bool]]:
    """Method, target and whether it is whole, of each request in *data*, as a server would read it."""
    found: list[tuple[str, str, bool]] = []
    while data:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        parser.receive_data(data)
        data = b""
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Request):
                host = [value for name, value in event.headers if name == b"host"]
                assert [_plain(each) for each in host] == [HOST], host
                found.append((event.method.decode(), event.target.decode(), False))
            elif isinstance(event, h11.EndOfMessage):
                found[-1] = (*found[-1][:2], True)
                data = bytes(parser.trailing_data[0])
                break
            elif not isinstance(event, h11.Data):
                break
    return found
