"""Mutated bytes into an inspected connection: no fault of ours, and a server that reads strictly gets the requests that
were allowed and no other (attacks 25, 42 and 237)."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable
from random import Random

import h11
import pytest

pytest.importorskip("mitmproxy")

import hpack
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from netsandbox_proxy.inspect.authority import Authority
from netsandbox_proxy.inspect.request_check import Refused, check_authority, check_head
from netsandbox_proxy.inspect.session_ca import SessionCa
from netsandbox_proxy.inspect.tls_contexts import TlsContexts

from tests.rig.clear_inspected import ClearInspected, SecuredInspected
from tests.rig.fuzzing import FUZZ, fuzz, split

HOST = b"Host: allowed.test\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
REQUESTS = [
    b"GET /ok HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /ok HTTP/1.1\r\n" + HOST + b"\r\nGET /no HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /ok HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhelloGET /ok HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /ok HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /no HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n24\r\nGET /ok HTTP/1.1\r\nHost: allowed.t\r\n"
    b"0\r\n\r\nGET /ok HTTP/1.1\r\n" + HOST + b"\r\n",
    b"PUT https://allowed.test/ok HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    b"GET /ok HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n",
    b"HEAD /ok HTTP/1.0\r\n" + HOST + b"Connection: keep-alive\r\n\r\nDELETE /ok HTTP/1.1\r\n" + HOST + b"\r\n",
]  # fmt: skip
TOKENS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\r\n\r\n", b"0\r\n\r\n", b"GET /no HTTP/1.1\r\n", b"/no",
    b"HTTP/1.1", b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Host: other.test\r\n", b"Connection: close\r\n",
    b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n", b"Trailer: x\r\n", b"chunked", b",", b";", b"http://other.test",
    b"CONNECT ", b"TRACE ", b"\xff", b"\x0b", b"\xc3\xa9", b"-1", b"+5", b"_",
]  # fmt: skip


def check_with(make: Callable[[], ClearInspected]) -> Callable[[bytes, Random], None]:
    """The client's bytes come in parts into a new connection each time."""

    def check(data: bytes, random: Random) -> None:
        made = make()
        made.receive(*split(random, data))
        made.check()

    return check


@FUZZ
def test_requests_of_http1() -> None:
    fuzz(50, REQUESTS, TOKENS, check_with(lambda: ClearInspected(b"http/1.1")))


ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nSet-Cookie: a=b\r\n\r\nok",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nConnection: close\r\n\r\n",
]


@FUZZ
def test_answers_of_http1() -> None:
    def check(data: bytes, random: Random) -> None:
        made = ClearInspected(random.choice((b"http/1.1", b"h2")), data)
        made.receive(TWO[0] if made.client.sent else REQUESTS[1])
        made.check()

    fuzz(15, ANSWERS, TOKENS, check)


def frames(*parts: object) -> bytes:
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join(part.serialize() for part in parts)  # type: ignore[attr-defined]


def head(path: str, method: str = "GET", *more: tuple[str, str]) -> bytes:
    fields = [(":method", method), (":scheme", "https"), (":authority", "allowed.test"), (":path", path), *more]
    return bytes(hpack.Encoder().encode(fields, huffman=False))


WHOLE = ["END_HEADERS", "END_STREAM"]
TWO = [
    frames(SettingsFrame(0), HeadersFrame(1, head("/ok"), flags=WHOLE)),
    frames(SettingsFrame(0), HeadersFrame(1, head("/ok"), flags=WHOLE), HeadersFrame(3, head("/no"), flags=WHOLE)),
    frames(
        SettingsFrame(0, {4: 100000}),
        HeadersFrame(1, head("/ok", "POST"), flags=["END_HEADERS"]),
        DataFrame(1, b"GET /no HTTP/1.1\r\nHost: allowed.test\r\n\r\n", flags=["END_STREAM"]),
        WindowUpdateFrame(0, 1000),
    ),
    frames(
        SettingsFrame(0),
        HeadersFrame(1, head("/ok", "POST", ("content-length", "5"))[:10]),
        ContinuationFrame(1, head("/ok", "POST", ("content-length", "5"))[10:], flags=["END_HEADERS"]),
        PingFrame(0, b"12345678"),
        DataFrame(1, b"hello", flags=["END_STREAM"]),
    ),
    frames(SettingsFrame(0), HeadersFrame(1, head("/ok"), flags=WHOLE), RstStreamFrame(1, 8), PriorityFrame(3, 1, 1)),
]
TWO_TOKENS = [
    b"/no", b"\r\n", b"\0", b"other.test", b"content-length", b"transfer-encoding", b":path", b":authority", b"GET",
    b"\x82", b"\x84", b"\x40\x01x\x01y", b"\xbe", b"\x3f\xe1\x1f", DataFrame(1, b"x").serialize(), PingFrame(0, b"1"
    * 8).serialize(), RstStreamFrame(1, 8).serialize(), HeadersFrame(5, head("/ok/5"), flags=WHOLE).serialize(),
    b"\x00\x00\x05\x00\x01", HeadersFrame(1, bytes(hpack.Encoder().encode([("x", "y")])), flags=WHOLE).serialize(),
    SettingsFrame(0).serialize(),
]  # fmt: skip


@FUZZ
def test_requests_of_http2() -> None:
    fuzz(25, TWO, TWO_TOKENS, check_with(lambda: ClearInspected(b"h2")))


HEADS = [
    b"GET /ok?x=y HTTP|allowed.test|x: y|z: a b",
    b"POST * HTTP|Allowed.test.:443|cookie: a=b; c=d|",
    b"PUT /%20|allowed.test|",
]
HEAD_TOKENS = [
    b"|", b":", b" ", b"\r\n", b"\0", b"\t", b"/", b"other.test", b"@", b":443", b":80", b".", b"x" * 70, b"\x7f",
]  # fmt: skip


@FUZZ
def test_heads() -> None:
    """What passes is one head of HTTP/1, for the host."""

    def check(data: bytes, random: Random) -> None:
        first, authority, *fields = [*data.split(b"|"), b"", b""]
        method, _, target = first.partition(b" ")
        headers = [(name, value) for name, _, value in (field.partition(b": ") for field in fields if field)]
        try:
            check_head(method, target, headers)
            check_authority("allowed.test", 443, [authority])
        except Refused:
            return
        head = b"%s %s HTTP/1.1\r\n" % (method, target) + b"".join(b"%s: %s\r\n" % header for header in headers)
        assert head.count(b"\r") == head.count(b"\n") == 1 + len(headers)
        assert authority.lower().removesuffix(b":443").removesuffix(b".") == b"allowed.test"
        parser = h11.Connection(h11.SERVER)
        parser.receive_data(head + b"Host: x\r\nConnection: close\r\n\r\n")
        with contextlib.suppress(h11.RemoteProtocolError):  # for the sake of other rules, such as two lengths
            assert parser.next_event().target == target  # type: ignore[union-attr]

    fuzz(20, HEADS, HEAD_TOKENS, check)


def hello(name: str, *protocols: str, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.maximum_version = version
    context.set_alpn_protocols(list(protocols))
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


@FUZZ
def test_the_beginning_of_tls() -> None:
    """A server is spoken to under the decided name, or not at all."""
    seeds = [
        hello("allowed.test", "h2"),
        hello("allowed.test", "h2", "http/1.1", version=ssl.TLSVersion.TLSv1_2),
        hello("other.test"),
    ]
    tokens = [
        b"other.test",
        b"\x16\x03\x01",
        b"\x00\x00",
        b"\xff\xff",
        b"\x02h2",
        b"\x08http/1.1",
        b"\x15\x03\x03\x00\x02\x02\x28",
    ]
    contexts = TlsContexts(Authority(SessionCa("fuzz")), b"")

    fuzz(10, seeds, tokens, check_with(lambda: SecuredInspected(contexts)))
