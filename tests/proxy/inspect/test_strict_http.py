"""The strict parsers; the tests of `inspected` with bad clients, bad servers and HTTP/2 run them in a real engine."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy")

from mitmproxy import http as messages
from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers import http
from netsandbox_proxy.inspect import layers, strict_http
from netsandbox_proxy.inspect.request_check import MAX_HEAD
from netsandbox_proxy.inspect.strict_http import Fault, StrictHttp1Client, StrictHttp1Server


def test_mitmproxy_makes_them() -> None:
    strict_http.install()
    assert http.Http1Server is StrictHttp1Server
    assert http.Http2Client is strict_http.StrictHttp2Client


def test_a_head_that_does_not_end_is_answered_once() -> None:
    context, _ = layers.stack("a.test", 443)
    server = StrictHttp1Server(context)
    list(server.handle_event(events.Start()))
    parts = [*server.handle_event(events.DataReceived(context.client, b"GET / HTTP/1.1\r\nx: " + b"y" * MAX_HEAD))]
    assert [type(part) for part in parts] == [Fault, commands.SendData, commands.CloseConnection]
    assert b"431" in parts[1].data
    assert [*server.handle_event(events.DataReceived(context.client, b"y"))] == []


def test_a_body_of_unknown_length_goes_in_chunks() -> None:
    context, _ = layers.stack("a.test", 443)
    context.server.state = ConnectionState.OPEN
    client = StrictHttp1Client(context)
    list(client.handle_event(events.Start()))
    request = messages.Request.make("POST", "https://a.test/x", b"", {"host": "a.test"})
    request.http_version = "HTTP/2.0"
    del request.headers["content-length"]
    sent = [*client.handle_event(http.RequestHeaders(1, request, end_stream=False))]
    sent += [*client.handle_event(http.RequestData(1, b"GET / HTTP/1.1\r\n\r\n"))]
    data = b"".join(part.data for part in sent)
    assert b"transfer-encoding: chunked\r\n" in data.lower()
    assert data.endswith(b"12\r\nGET / HTTP/1.1\r\n\r\n\r\n")
