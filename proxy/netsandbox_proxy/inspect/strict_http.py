"""mitmproxy's parsers of HTTP, made strict: what breaks the protocol gets its error as an answer, and is a `Fault`.

- A head that does not end is answered with 431 when it is too long; mitmproxy would keep all of it.
- Heads before the answer itself (100, 103) are dropped; mitmproxy would take one for the answer.
- Trailers of an HTTP/1 request, and malformed chunks, are answered with 400. Trailers of a response are dropped, as
  those of an HTTP/2 request to a server of HTTP/1 are.
- A body of HTTP/2 without a length goes to a server of HTTP/1 in chunks. mitmproxy would send it as it is, so that the
  server could take it for the next request. A part of no bytes is not sent: as a chunk it would end the message.
"""

from __future__ import annotations

from typing import Any

import h2.errors
import h2.events
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers import http
from mitmproxy.proxy.layers.http import _base, _events, _http1, _http2

from netsandbox_proxy.inspect.refusals import client_certificate_hint, error_response
from netsandbox_proxy.inspect.request_check import BODILESS, MAX_HEAD, Refused

MAX_INTERIM = 16
START = len(b"HTTP/1.1 100")
INTERIM, SWITCHING = (b"HTTP/1.1 1", b"HTTP/1.0 1"), b"101"
CLOSED = "server closed connection"  # as mitmproxy says it
TOO_LONG, TRAILERS = "the head is too long", "trailers are not passed on"


class Fault(commands.Command):
    """A peer broke the protocol: how, in a few words."""

    def __init__(self, text: str) -> None:
        self.text = text


def _error(kind: Any, stream_id: int, text: str) -> Any:
    """An event; mitmproxy 12 wants a code of its own."""
    codes = getattr(_events, "ErrorCode", None)
    if codes is None:
        return kind(stream_id, text)
    is_request = kind is http.RequestProtocolError
    return kind(stream_id, text, codes.GENERIC_CLIENT_ERROR if is_request else codes.GENERIC_SERVER_ERROR)


def _is_dropped(event: Any) -> bool:
    """Whether HTTP/1 does not carry it: trailers, and a chunk of no bytes, which would be the end of the message."""
    if isinstance(event, http.RequestData | http.ResponseData):
        return not event.data
    return isinstance(event, http.RequestTrailers | http.ResponseTrailers)


class StrictHttp1Server(_http1.Http1Server):
    """Reads the requests of a client."""

    state: Any
    buf: Any

    def send(self, event: Any) -> Any:
        if not _is_dropped(event):
            yield from super().send(event)

    def read_headers(self, event: Any) -> Any:
        for command in super().read_headers(event):
            if isinstance(command, commands.Log):  # what it says about a head that it cannot read
                yield Fault("the head of the request cannot be read")
            yield command
        is_data = isinstance(event, events.DataReceived)
        if is_data and self.state == self.read_headers and len(self.buf) > MAX_HEAD:
            yield from self._refuse(431, TOO_LONG)

    def read_body(self, event: Any) -> Any:
        try:
            for command in super().read_body(event):
                if isinstance(command, commands.CloseConnection) and self.response is None:
                    yield Fault("the body of the request cannot be read")
                    yield commands.SendData(self.conn, error_response(400, "the body of the request cannot be read"))
                yield command
        except NotImplementedError:
            yield from self._refuse(400, TRAILERS)
            yield _base.ReceiveHttp(_error(http.RequestProtocolError, self.stream_id, TRAILERS))

    def _refuse(self, status: int, text: str) -> Any:
        yield Fault(text)
        if self.response is None:
            yield commands.SendData(self.conn, error_response(status, text))
        yield commands.CloseConnection(self.conn)
        self.state, self.buf = self.done, type(self.buf)()


class StrictHttp1Client(_http1.Http1Client):
    """Reads the responses of a server."""

    state: Any
    buf: Any

    def send(self, event: Any) -> Any:
        if isinstance(event, http.RequestHeaders) and event.request.is_http2 and not event.end_stream:
            headers = event.request.headers
            if event.request.data.method.upper() in BODILESS and "content-length" not in headers:
                raise Refused(400, "malformed", "a body where none belongs, for a server of HTTP/1")
            headers.update({} if "content-length" in headers else {"transfer-encoding": "chunked"})
        if not _is_dropped(event):
            yield from super().send(event)

    interim = 0

    def read_headers(self, event: Any) -> Any:
        is_data = isinstance(event, events.DataReceived)
        while is_data and self.request and self._is_interim() and self.buf.maybe_extract_lines():
            self.interim += 1
        for command in super().read_headers(event) if self.interim <= MAX_INTERIM else ():
            if isinstance(command, _base.ReceiveHttp) and getattr(command.event, "message", "") == CLOSED:
                command.event.message = f"The {CLOSED}. {client_certificate_hint(self.conn.address[0])}"
            yield command
        if self.state != self.read_headers:
            self.interim = 0
        elif is_data and self.stream_id and (len(self.buf) > MAX_HEAD or self.interim > MAX_INTERIM):
            yield Fault(f"response: {TOO_LONG}")
            yield commands.CloseConnection(self.conn)
            yield _base.ReceiveHttp(_error(http.ResponseProtocolError, self.stream_id, f"response: {TOO_LONG}"))
            self.state, self.buf = self.done, type(self.buf)()

    def _is_interim(self) -> bool:
        start = bytes(self.buf._data[:START])
        return len(start) == START and start.startswith(INTERIM) and not start.endswith(SWITCHING)

    def read_body(self, event: Any) -> Any:
        try:
            yield from super().read_body(event)
        except NotImplementedError:
            yield _base.ReceiveHttp(http.ResponseEndOfMessage(self.stream_id))
            yield from self.mark_done(response=True)


class StrictHttp2Server(_http2.Http2Server):
    """Reads the requests of a client."""

    def handle_h2_event(self, event: Any) -> Any:
        is_whole = isinstance(event, h2.events.RequestReceived) and event.stream_ended
        if is_whole and any(name == b"content-length" and value != b"0" for name, value in event.headers):
            yield from self.protocol_error("a request without a body names its length")
            return True
        if isinstance(event, h2.events.StreamReset) and _is_ours(event):
            yield Fault("the head of the request breaks HTTP/2")
        return (yield from super().handle_h2_event(event))

    def protocol_error(self, message: str, *more: Any) -> Any:
        yield Fault(message)
        yield from super().protocol_error(message, *more)


def _is_ours(reset: h2.events.StreamReset) -> bool:
    """Whether the library itself ended a stream for what the peer sent there; newer versions go on with the others."""
    return not reset.remote_reset and reset.error_code == h2.errors.ErrorCodes.PROTOCOL_ERROR


class StrictHttp2Client(_http2.Http2Client):
    """Reads the responses of a server."""

    def protocol_error(self, message: str, *more: Any) -> Any:
        yield Fault(f"response: {message}")
        yield from super().protocol_error(message, *more)


def install() -> None:
    """Let mitmproxy make these."""
    http.Http1Server, http.Http1Client = StrictHttp1Server, StrictHttp1Client
    http.Http2Server, http.Http2Client = StrictHttp2Server, StrictHttp2Client
