"""The host of a connection's first bytes, read strictly, whole and byte by byte; and which hosts are names."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from netsandbox_portmap.request_host import MAX_HEAD, Opening, OpeningReader, explain, split_name
from netsandbox_portmap.tls_answer import PROBE

from netsandbox.runtime.http.errors import ProtocolError

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
TOKEN = st.text(LETTERS + "!#$%&'*+.^_`|~", min_size=1, max_size=12)
LABEL = st.text(LETTERS, min_size=1, max_size=12)
HOST = st.lists(LABEL, min_size=1, max_size=4).map(".".join)
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20)
SKIPPED = {"host", "content-length", "transfer-encoding"}
HEADERS = st.lists(st.tuples(TOKEN.filter(lambda name: name.lower() not in SKIPPED), VALUE), max_size=5)
PIECES = [b"GET", b" ", b"/", b"HTTP/1.1", b"\r\n", b"\n", b"\r", b"Host", b":", b"a.localhost", b"\0", b"\t"]
SOUP = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(b"".join)


def said(opening: Opening | None) -> tuple[object, ...]:
    head = opening.head if opening is not None else None
    return "host", opening and opening.host, head and head.method


def whole(data: bytes) -> tuple[object, ...]:
    try:
        return said(OpeningReader().feed(data))
    except ProtocolError as error:
        return "error", error.status, explain(error)


def by_bytes(data: bytes) -> tuple[object, ...]:
    reader = OpeningReader()
    opening = None
    try:
        for index in range(len(data)):
            opening = reader.feed(data[index : index + 1])
            if opening is not None:
                break
    except ProtocolError as error:
        return "error", error.status, explain(error)
    return said(opening)


def request(*lines: bytes) -> bytes:
    return b"\r\n".join((b"GET / HTTP/1.1", *lines)) + b"\r\n\r\n"


@given(TOKEN, HOST, st.none() | st.integers(1, 65535), HEADERS, st.binary(max_size=10))
def test_what_h11_writes_and_reads_is_read_the_same(
    method: str, host: str, port: int | None, headers: list[tuple[str, str]], body: bytes
) -> None:
    if method == "CONNECT":
        return
    authority = host if port is None else f"{host}:{port}"
    ours = h11.Connection(h11.CLIENT)
    raw = ours.send(h11.Request(method=method, target="/x?y=1", headers=[("Host", authority), *headers]))
    assert raw is not None
    theirs = h11.Connection(h11.SERVER)
    theirs.receive_data(raw)
    event = theirs.next_event()
    assert isinstance(event, h11.Request)
    read = dict(event.headers)[b"host"].decode()
    assert whole(raw + body) == by_bytes(raw + body) == ("host", read.lower().split(":")[0], event.method)


@given(SOUP)
@example(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\0\n")
@example(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * MAX_HEAD + b"\r\n\r\n")
@example(b"\r\n")
@example(PROBE)
@example(PROBE[:-1])
@example(PROBE[:9] + b"\0" + PROBE[10:])
def test_however_the_bytes_are_cut_the_answer_is_the_same(data: bytes) -> None:
    assert whole(data) == by_bytes(data)


@given(SOUP)
def test_what_has_a_host_is_what_h11_would_accept(data: bytes) -> None:
    kind, host, _ = whole(b"GET / HTTP/1.1\r\n" + data)
    if kind == "error" or not host:
        return
    theirs = h11.Connection(h11.SERVER)
    theirs.receive_data(b"GET / HTTP/1.1\r\n" + data)
    event = theirs.next_event()
    assert isinstance(event, h11.Request)
    assert dict(event.headers)[b"host"].decode().lower().startswith(str(host))


@pytest.mark.parametrize(
    ("value", "host"),
    [
        (b"Shop.LocalHost", "shop.localhost"),
        (b"shop.localhost.:80", "shop.localhost"),
        (b"shop.localhost:", None),
        (b"127.0.0.1:8080", "127.0.0.1"),
        (b"[::1]:8080", "[::1]"),
        (b"[::1]", "[::1]"),
        (b"::1", None),
        (b"[shop.localhost]", None),
        (b"a:b", None),
        (b"a:123456", None),
        (b"a@b", None),
        (b"a, b", None),
        (b"a b", None),
        (b"", None),
        (b"\xc3\xa9.localhost", None),
    ],
)
def test_the_host_without_its_port(value: bytes, host: str | None) -> None:
    result = whole(request(b"Host: " + value))
    assert result[:2] == (("host", host) if host is not None else ("error", 400))


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (request(), 400),
        (request(b"Host: a", b"Host: a"), 400),
        (request(b"Host: a", b"hOST: b"), 400),
        (request(b"Host: a", b" folded"), 400),
        (request(b"Host : a"), 400),
        (request(b"Host: a\0"), 400),
        (request(b"X: a\rb", b"Host: a"), 400),
        (request(b"novalue", b"Host: a"), 400),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http://evil.test/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT evil.test:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"GET / HTTP/1.0\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\n", 400),
        (b"\x16\x02", 400),
        (b"\x17\x03\x01", 400),
        (b"\x80\x2e\x01\x03", 400),
        (b"\r\nGET / HTTP/1.1\r\n", 400),
        (b"A" * (MAX_HEAD + 1), 431),
        (request(b"Host: a", b"X: " + b"x" * MAX_HEAD), 431),
    ],
)
@pytest.mark.attack(24)
def test_what_could_be_read_in_two_ways_is_an_error(data: bytes, status: int) -> None:
    assert whole(data)[:2] == ("error", status)
    assert by_bytes(data)[:2] == ("error", status)


def test_every_byte_is_kept_for_the_server() -> None:
    reader = OpeningReader()
    assert reader.feed(b"OPTIONS * HTTP/1.1\r\nHo") is None
    opening = reader.feed(b"st: a\r\n\r\nbody")
    assert opening is not None
    assert (opening.host, opening.rest) == ("a", b"body")
    assert reader.held == b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nbody"


def test_tls_names_its_host_in_the_first_message() -> None:
    reader = OpeningReader()
    opening = reader.feed(PROBE)
    assert opening is not None
    assert (opening.host, opening.head, reader.is_tls, reader.held) == ("localhost", None, True, PROBE)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("shop.localhost", ("shop", None)),
        ("3000.shop.localhost", ("shop", 3000)),
        ("65535.shop.localhost", ("shop", 65535)),
        ("65536.shop.localhost", ("", None)),
        ("0.shop.localhost", ("", None)),
        ("03000.shop.localhost", ("", None)),
        ("+3000.shop.localhost", ("", None)),
        ("3000.3000.shop.localhost", ("", None)),
        ("x.shop.localhost", ("", None)),
        (".shop.localhost", ("", None)),
        ("\u0663.shop.localhost", ("", None)),
        ("localhost", ("", None)),
        ("shop.localhost.evil.test", None),
        ("xlocalhost", None),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("", None),
    ],
)
def test_only_names_under_localhost_are_routed(host: str, expected: tuple[str, int | None] | None) -> None:
    assert split_name(host) == expected


@given(st.text(max_size=30) | HOST.map("{}.localhost".format))
def test_what_is_routed_is_under_localhost_and_spelled_in_one_way(host: str) -> None:
    found = split_name(host)
    if found is None:
        assert host != "localhost"
        assert not host.endswith(".localhost")
    elif found[0]:
        name, port = found
        assert host == (f"{name}.localhost" if port is None else f"{port}.{name}.localhost")
