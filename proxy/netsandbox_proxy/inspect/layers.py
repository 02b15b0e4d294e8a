"""mitmproxy's layers, with the changes that an inspected connection needs. They touch parts that are not mitmproxy's
public interface, so `installed` names the versions that were tested.

- A refused request is answered at once, and its body is dropped as it comes: mitmproxy would keep all of it.
- After `101 Switching Protocols` bytes pass without being kept: mitmproxy would keep every message.
- A server that ends its connection with a fatal alert after the handshake (it wants a client certificate) counts as
  closed: mitmproxy would wait for ever.
- The parsers of HTTP are those of `strict_http`.
- An error about a server's headers does not quote them: they may show a secret.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.http import Response
from mitmproxy.net.http.validate import validate_headers
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http, tcp, tls
from mitmproxy.proxy.layers.http import _http1

from netsandbox_proxy.inspect import speed, strict_http
from netsandbox_proxy.inspect.refusals import error_response
from netsandbox_proxy.inspect.tls_connection import TlsConnection

MAX_DROPPED = 1 << 20  # bytes of a refused body; then the connection is closed
OPTIONS = SimpleNamespace(
    validate_inbound_headers=True,
    normalize_outbound_headers=True,
    keep_host_header=True,
    stream_large_bodies=None,
    body_size_limit=None,
    store_streamed_bodies=False,  # of mitmproxy 12
    websocket=False,
    rawtcp=True,
    http2_ping_keepalive=0,
    connection_strategy="lazy",
    proxy_debug=False,
)


class InspectedStream(http.HttpStream):
    """One request and its response."""

    dropped = 0

    def start_request_stream(self) -> Any:
        if not self.flow.response:
            yield from super().start_request_stream()
            return
        self.flow.response.headers["connection"] = "close"
        if self.flow.request.is_http2:
            del self.flow.response.headers["connection"]
        self.client_state = self.state_drop_body
        self.server_state = self.state_errored
        content = self.flow.response.raw_content or b""
        yield http.SendHttp(http.ResponseHeaders(self.stream_id, self.flow.response, not content), self.context.client)
        if content:
            yield http.SendHttp(http.ResponseData(self.stream_id, content), self.context.client)
        yield http.HttpResponseHook(self.flow)
        yield http.SendHttp(http.ResponseEndOfMessage(self.stream_id), self.context.client)

    def state_drop_body(self, event: Any) -> Any:
        if isinstance(event, http.RequestData):
            self.dropped += len(event.data)
            if self.dropped > MAX_DROPPED:
                self.client_state = self.state_errored
                yield commands.CloseConnection(self.context.client)
        elif isinstance(event, http.RequestEndOfMessage):
            self.client_state = self.state_errored
            yield http.DropStream(self.stream_id)

    def handle_protocol_error(self, event: Any) -> Any:
        if "placed" in self.flow.metadata:  # the message may quote bytes of the server, which saw a secret
            event.message = "the connection to the server failed"
        yield from super().handle_protocol_error(event)

    def flow_done(self) -> Any:
        assert self.flow.response
        if self.flow.response.status_code != 101:
            yield from super().flow_done()
            return
        self.child_layer = tcp.TCPLayer(self.context, ignore=True)
        self._handle_event = self.passthrough
        yield from self.child_layer.handle_event(events.Start())
        yield http.SendHttp(http.ResponseEndOfMessage(self.stream_id), self.context.client)


class _Tls:
    """What both sides of TLS do, with `TlsConnection`."""

    tls: TlsConnection
    conn: Any
    is_told = False  # the layers inside know that the connection is closed

    def tls_interact(self) -> Any:
        if unsent := self.tls.unsent():
            yield commands.SendData(self.conn, unsent)

    def receive_handshake_data(self, data: bytes) -> Any:
        outcome = yield from super().receive_handshake_data(data)  # type: ignore[misc]
        self.conn.certificate_list = ()  # nothing looks at them any more
        return outcome

    def receive_data(self, data: bytes) -> Any:
        text, is_end = self.tls.decrypt(data)
        yield from self.tls_interact()
        if text:
            yield from self.event_to_child(events.DataReceived(self.conn, text))
        if is_end:
            self.conn.state &= ~ConnectionState.CAN_READ
            yield from self.event_to_child(events.ConnectionClosed(self.conn))

    def event_to_child(self, event: Any) -> Any:
        if isinstance(event, events.ConnectionClosed) and event.connection is self.conn:
            self.is_told = True
        yield from super().event_to_child(event)  # type: ignore[misc]

    def receive_close(self) -> Any:
        if not self.is_told:
            yield from self.event_to_child(events.ConnectionClosed(self.conn))

    def send_data(self, data: bytes) -> Any:
        if records := self.tls.encrypt(data):
            yield commands.SendData(self.conn, records)


class DownstreamTls(_Tls, tls.ClientTLSLayer):
    """TLS towards the client."""


class UpstreamTls(_Tls, tls.ServerTLSLayer):
    """TLS towards the server."""


def check_headers(message: Any) -> None:
    try:
        validate_headers(message)
    except ValueError as error:
        raise ValueError("headers that no response has" if isinstance(message, Response) else str(error)) from None


def install() -> None:
    """Let mitmproxy's layers make ours. Once, before the first connection."""
    http.HttpStream = InspectedStream
    tls.ServerTLSLayer = UpstreamTls
    http.validate_headers = check_headers
    _http1.make_error_response = error_response
    strict_http.install()
    speed.install()


def mark_open(server: Server) -> None:
    """Tell the layers that the connection is made; some look at its state, some at its time."""
    server.state = ConnectionState.OPEN
    server.timestamp_start = 0.0


def stack(host: str, port: int) -> tuple[Context, tls.ServerTLSLayer]:
    """The layers of a connection whose both sides are connected already, and their context."""
    client = Client(peername=("client", 0), sockname=("door", 0), timestamp_start=0.0, state=ConnectionState.OPEN)
    context = Context(client, OPTIONS)
    context.server = Server(address=(host, port))
    mark_open(context.server)
    context.server.sni = host
    outer = UpstreamTls(context)
    outer.child_layer = DownstreamTls(context)
    return context, outer
