"""Every accepted head has one reading: fed whole or byte by byte, by us or by h11."""

from __future__ import annotations

import base64
import time

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.http.body import framing
from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.head import (
    MAX_CACHED_HEAD,
    MAX_CACHED_HEADS,
    MAX_CACHED_NAME,
    MAX_CACHED_NAMES,
    HeadCache,
    HeaderNames,
    HeadReader,
    RequestHead,
    basic_token,
)

GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n"


def outcome(data: bytes, step: int) -> object:
    """What became of *data* fed in steps: the head and leftover, the error, or None."""
    reader = HeadReader(limit_line=64, limit_head=200, limit_headers=4)
    for at in range(0, len(data), step):
        try:
            result = reader.feed(data[at : at + step])
        except ProtocolError as error:
            return (error.reason, error.status, error.detail)
        if result is not None:
            head, leftover = result
            return (head.method, head.target, head.version, head.headers, head.raw, leftover + data[at + step :])
    return None


def read(data: bytes) -> tuple[RequestHead, bytes]:
    result = HeadReader().feed(data)
    assert result is not None
    return result


def refused(data: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        HeadReader().feed(data)
    return caught.value


def test_a_head_and_what_follows_it() -> None:
    head, leftover = read(b"POST /x?y HTTP/1.1\r\nHost: a.test\r\nX-A:  one \t\r\nx-a:\r\n\r\nbody")
    assert (head.method, head.target, head.version) == (b"POST", b"/x?y", b"HTTP/1.1")
    assert head.headers == [(b"Host", b"a.test"), (b"X-A", b"one"), (b"x-a", b"")]
    assert head.get_all(b"x-a") == [b"one", b""]
    assert head.host == b"a.test"
    assert leftover == b"body"
    assert head.raw.endswith(b"x-a:\r\n\r\n")


def test_http_1_0_may_lack_a_host() -> None:
    assert read(b"GET / HTTP/1.0\r\n\r\n")[0].host is None


@pytest.mark.attack(24)
@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"Host: a.test\r\nHost: a.test\r\n",
        b"Host: a.test\r\nhost: b.test\r\n",
        b"Host:\r\n",
        b"Host: \r\n",
        b"Host : a.test\r\n",
        b"Host: a.test, b.test\r\n",
        b"Host: a.test\r\n b.test\r\n",
        b"Host:\r\n a.test\r\n",
        b" Host: a.test\r\n",
        b"Host: a.test b.test\r\n",
        b"Host: u@a.test\r\n",
        b"Host: a.test:0\r\n",
        b"Host:  a.test\r\n",
        b"Host: http://a.test\r\n",
        b"Host: a.test\t\r\n",
        b"Host: a\xc3\xa9.test\r\n",
        b"Host\t: a.test\r\n",
    ],
)
def test_exactly_one_plain_host(lines: bytes) -> None:
    """Attack 24: doubled, folded, padded, empty or listed Host headers."""
    error = refused(b"GET / HTTP/1.1\r\n" + lines + b"\r\n")
    assert (error.reason, error.status) == ("malformed", 400)


@pytest.mark.attack(32)
@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\nHost: a.test\n\n",
        b"GET / HTTP/1.1\r\nHost: a.test\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        GET + b"X: a\rb\r\n\r\n",
        GET + b"X: a\x00b\r\n\r\n",
        GET + b"X: a\x7f\r\n\r\n",
        GET + b"X\x00: a\r\n\r\n",
        GET + b": a\r\n\r\n",
        GET + b"X\r\n\r\n",
        GET + b"X y: a\r\n\r\n",
        GET + b"X: a\x0bb\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        b"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / http/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xc3 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
        b"GET / HTTP/+1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_lenient_readings_are_refused(data: bytes) -> None:
    """Attack 32: NUL and everything else that one parser skips and another one reads."""
    error = refused(data)
    assert (error.reason, error.status) == ("malformed", 400)


@pytest.mark.attack(32)
@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 65536 + b" HTTP/1.1\r\n",
        b"G" * 70000,
        GET + b"X: " + b"a" * 1000000,
        GET + b"X: a\r\n" * 10000,
        GET + (b"X: " + b"a" * 8000 + b"\r\n") * 9,
    ],
)
def test_a_head_over_a_limit_is_answered_with_431(data: bytes) -> None:
    """Attack 32: long lines, many headers, no CRLF ever."""
    error = refused(data)
    assert (error.reason, error.status) == ("limit", 431)


@pytest.mark.attack(34)
def test_http2_is_not_spoken() -> None:
    """Attack 34: prior knowledge of HTTP/2."""
    error = refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert (error.reason, error.status) == ("unsupported", 400)


@pytest.mark.parametrize("version", [b"HTTP/2.0", b"HTTP/1.2", b"HTTP/0.9", b"HTTP/3", b"HTTP/9.9"])
def test_other_versions_are_505(version: bytes) -> None:
    error = refused(b"GET / " + version + b"\r\nHost: a.test\r\n\r\n")
    assert (error.reason, error.status) == ("unsupported", 505)


@pytest.mark.attack(27)
@pytest.mark.attack(28)
@pytest.mark.parametrize(
    "line",
    [b"Content-Length:  1 ", b"Content-Length:\t1", b"Transfer-Encoding:\tchunked", b"Transfer-Encoding: chunked "],
)
def test_framing_headers_are_not_padded(line: bytes) -> None:
    """Attacks 27 and 28: white space that some parsers keep."""
    assert refused(GET + line + b"\r\n\r\n").reason == "malformed"


def test_an_error_stays_an_error() -> None:
    reader = HeadReader()
    with pytest.raises(ProtocolError):
        reader.feed(b"GET / HTTP/1.1\nHost: a.test\r\n\r\n")
    with pytest.raises(ProtocolError):
        reader.feed(GET + b"\r\n")


@pytest.mark.attack(192)
def test_a_byte_at_a_time_is_linear() -> None:
    """Attack 192: 64 KiB in single bytes costs what 64 Ki calls cost, and no more."""
    reader = HeadReader()
    data = GET + b"".join(b"X%d: %s\r\n" % (i, b"a" * 600) for i in range(100))
    begun = time.process_time()
    for byte in data:
        assert reader.feed(bytes([byte])) is None
    assert time.process_time() - begun < 2


PIECES = st.sampled_from(
    [
        b"GET",
        b"CONNECT",
        b"PRI",
        b" ",
        b"/",
        b"*",
        b"HTTP/1.1",
        b"HTTP/1.0",
        b"HTTP/2.0",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b"Host: a.test",
        b"Host",
        b": ",
        b":",
        b"X: y",
        b"\t",
        b"a.test",
        b"\x00",
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b",",
        b"\xff",
        b"Content-Length: 5",
        b"Transfer-Encoding: chunked",
        b"GET / HTTP/1.1\r\n",
        b"Host: a.test\r\n",
        b"Connection: close\r\n",
    ]
)
HEADS = st.lists(PIECES, max_size=14).map(b"".join) | st.lists(PIECES, max_size=8).map(
    lambda pieces: b"GET / HTTP/1.1\r\nHost: a.test\r\n" + b"".join(pieces) + b"\r\n\r\n"
)


@given(HEADS, st.integers(1, 9))
def test_a_head_in_pieces_is_read_like_a_whole_one(data: bytes, step: int) -> None:
    assert outcome(data, len(data) or 1) == outcome(data, step) == outcome(data, 1)


@given(HEADS)
def test_what_we_accept_h11_reads_the_same_way(data: bytes) -> None:
    try:
        result = HeadReader().feed(data)
        if result is None:
            return
        framing(result[0])
    except ProtocolError:
        return
    head = result[0]
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(head.raw)
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    assert (event.method, event.target, event.http_version) == (head.method, head.target, head.version[5:])
    assert list(event.headers) == [
        (name.lower(), value.lower() if name.lower() == b"transfer-encoding" else value) for name, value in head.headers
    ]


def head_with(*lines: bytes) -> RequestHead:
    result = HeadReader().feed(b"\r\n".join((b"GET / HTTP/1.1", b"Host: a.test", *lines)) + b"\r\n\r\n")
    assert result is not None
    return result[0]


def test_the_token_is_the_password_of_basic() -> None:
    for scheme in (b"Basic ", b"basic  "):
        encoded = base64.b64encode(b"netsandbox:to:ken")
        assert basic_token(head_with(b"Proxy-Authorization: " + scheme + encoded)) == b"to:ken"


@pytest.mark.attack(182)
@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"Proxy-Authorization: Basic"],
        [b"Proxy-Authorization: Bearer dTp0"],
        [b"Proxy-Authorization: Basic ***"],
        [b"Proxy-Authorization: Basic dTp"],
        [b"Proxy-Authorization: Basic dXNlcg=="],
        [b"Authorization: Basic dTp0"],
        [b"Proxy-Authorization: Basic dTp0"] * 2,
    ],
)
def test_no_token_can_be_read(lines: list[bytes]) -> None:
    """Attack 182: absent, doubled, of another scheme, or not base64."""
    assert basic_token(head_with(*lines)) is None


def test_the_cache_of_names_is_bounded_and_holds_only_tokens() -> None:
    names = HeaderNames()
    for number in range(MAX_CACHED_NAMES + 9):
        assert names[b"X-%d" % number] == b"x-%d" % number
    assert len(names) == MAX_CACHED_NAMES
    names = HeaderNames()
    assert names[b"X" * (MAX_CACHED_NAME + 1)] == b"x" * (MAX_CACHED_NAME + 1)
    for wrong in (b"", b"a b", b"a\0", b"\xe9", b"a:"):
        with pytest.raises(ProtocolError):
            names[wrong]
    assert not names


@pytest.mark.attack(197)
def test_the_memory_of_heads_is_bounded_and_the_oldest_goes_first() -> None:
    heads = HeadCache()
    for number in range(MAX_CACHED_HEADS + 1):
        heads.add(b"%d" % number, (b"host", number, None))
    assert heads.get(b"0") is None
    assert heads.get(b"1") == (b"host", 1, None)
    heads.add(b"x" * (MAX_CACHED_HEAD + 1), (b"host", 1, None))
    assert heads.get(b"x" * (MAX_CACHED_HEAD + 1)) is None
