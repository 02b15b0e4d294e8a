"""An origin's answer passes verbatim up to its end, and nothing of a head that did not parse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.response import ResponseReader

OK = b"HTTP/1.1 200 OK\r\n"


def read(data: bytes, method: bytes = b"GET") -> tuple[ResponseReader, bytes, bytes]:
    reader = ResponseReader(method)
    return (reader, *reader.feed(data))


def outcome(data: bytes, step: int, method: bytes) -> object:
    reader = ResponseReader(method)
    forward = b""
    for at in range(0, len(data), step):
        try:
            passed, leftover = reader.feed(data[at : at + step])
        except ProtocolError as error:
            return (error.reason, error.status, error.detail)
        forward += passed
        assert reader.started == bool(forward)
        if reader.done:
            rest = leftover + data[at + step :]
            return (forward, rest, reader.status, reader.close_delimited, reader.keep_alive and not rest)
    return (forward, reader.status, reader.upgraded, reader.close_delimited)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (OK + b"Content-Length: 2\r\n\r\n", b"ok"),
        (OK + b"content-length:   0\r\n\r\n", b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"2;x=y\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", b""),
        (b"HTTP/1.1 999\r\nContent-Length: 1\r\n\r\n", b"x"),
        (b"HTTP/1.1 404 \r\nContent-Length: 1\r\n\r\n", b"x"),
    ],
)
def test_a_response_ends_where_it_says(head: bytes, body: bytes) -> None:
    reader, forward, leftover = read(head + body)
    assert (forward, leftover) == (head + body, b"")
    assert reader.done
    assert reader.keep_alive
    assert not reader.close_delimited


def test_head_has_no_body_whatever_its_headers_say() -> None:
    reader, forward, leftover = read(OK + b"Content-Length: 10\r\n\r\n", b"HEAD")
    assert (forward, leftover, reader.done) == (OK + b"Content-Length: 10\r\n\r\n", b"", True)


def test_without_framing_it_lasts_until_close() -> None:
    reader, forward, _ = read(OK + b"\r\nall of it")
    assert forward.endswith(b"all of it")
    assert reader.close_delimited
    assert not reader.keep_alive
    assert not reader.done
    assert reader.feed(b" and more") == (b" and more", b"")


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: x, Close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: Keep-Alive\r\n", True),
    ],
)
def test_keep_alive(version: bytes, connection: bytes, kept: bool) -> None:
    reader, _, _ = read(b"HTTP/" + version + b" 200 OK\r\n" + connection + b"Content-Length: 0\r\n\r\n")
    assert reader.keep_alive is kept


def test_interim_responses_pass_before_the_real_one() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    reader, forward, _ = read(early)
    assert (forward, reader.done, reader.started) == (early, False, True)
    assert reader.feed(OK + b"Content-Length: 0\r\n\r\n")[1] == b""
    assert (reader.done, reader.status) == (True, 200)


@pytest.mark.attack(43)
@pytest.mark.parametrize(
    "data",
    [
        b"garbage\r\n\r\n",
        b"\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 X\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 200 O\x00K\r\n\r\n",
        b"HTTP/1.1 200 OK\n\n",
        b"HTTP/1.1 +20 OK\r\n\r\n",
        OK + b"X : y\r\n\r\n",
        OK + b"X: y\r\n z\r\n\r\n",
        OK + b"X: \x00\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.0 101 X\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_garbage_becomes_a_502(data: bytes) -> None:
    """Attack 43: nothing is passed on, so the door can still answer for the origin."""
    reader = ResponseReader(b"GET")
    with pytest.raises(ProtocolError) as caught:
        reader.feed(data)
    assert (caught.value.reason, caught.value.status) == ("malformed", 502)
    assert not reader.started


@pytest.mark.attack(43)
@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 100 Continue\r\n\r\n" * 100, OK + b"X: y\r\n" * 20000, OK + b"X: " + b"y" * 70000, b"x" * 70000]
)
def test_endless_heads_and_interims_are_cut_off(data: bytes) -> None:
    """Attack 43."""
    for step in (7, len(data)):
        result = outcome(data, step, b"GET")
        assert isinstance(result, tuple)
        assert result[:2] == ("limit", 502)


@pytest.mark.attack(43)
def test_no_byte_of_half_a_head_is_passed_on() -> None:
    """Attack 43: early close inside the head leaves the client untouched."""
    reader, forward, leftover = read(OK + b"Content-Length: 5\r\n")
    assert (forward, leftover, reader.started, reader.done) == (b"", b"", False, False)


@pytest.mark.attack(43)
def test_a_smuggled_second_response_is_not_forwarded() -> None:
    """Attack 43: bytes behind the end are handed back and the connection is not used again."""
    reader, forward, leftover = read(OK + b"Content-Length: 2\r\n\r\nok" + OK + b"\r\n")
    assert forward.endswith(b"\r\n\r\nok")
    assert leftover == OK + b"\r\n"
    assert not reader.keep_alive
    late, _, _ = read(OK + b"Content-Length: 0\r\n\r\n")
    assert late.feed(b"late") == (b"", b"late")
    assert not late.keep_alive


@pytest.mark.attack(35)
def test_after_101_everything_is_opaque() -> None:
    """Attack 35."""
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    reader, forward, leftover = read(head + b"\x81\x00")
    assert (forward, leftover) == (head + b"\x81\x00", b"")
    assert reader.upgraded
    assert not reader.done
    assert reader.feed(b"\r\n\0") == (b"\r\n\0", b"")


@pytest.mark.attack(34)
def test_a_101_that_nobody_asked_for_is_a_fault() -> None:
    """Attack 34: an origin cannot talk a client out of HTTP."""
    with pytest.raises(ProtocolError):
        ResponseReader(b"GET", upgrade=False).feed(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n")


def test_a_parents_answer_to_connect_ends_with_its_head() -> None:
    reader, forward, leftover = read(OK + b"\r\n\x16\x03", b"CONNECT")
    assert (forward, leftover, reader.done) == (OK + b"\r\n", b"\x16\x03", True)


PIECES = st.sampled_from(
    [
        OK,
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 X\r\n",
        b"HTTP/1.1 101 X\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"\r\n",
        b"\n",
        b"X: y\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"abc",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b"\x00",
    ]
)


@given(st.lists(PIECES, max_size=10).map(b"".join), st.integers(1, 9), st.sampled_from([b"GET", b"HEAD", b"CONNECT"]))
def test_a_response_in_pieces_is_read_like_a_whole_one(data: bytes, step: int, method: bytes) -> None:
    assert outcome(data, len(data) or 1, method) == outcome(data, step, method) == outcome(data, 1, method)


def test_a_head_is_rewritten_and_the_body_is_not() -> None:
    heads: list[list[bytes]] = []

    def rewrite(lines: list[bytes], raw: bytes) -> bytes:
        heads.append(lines)
        return b"changed"

    reader = ResponseReader(b"GET", rewrite=rewrite)
    data = OK + b"Content-Length: 2\r\n\r\n"
    assert reader.feed(data + b"ok") == (b"changedok", b"")
    assert heads == [[OK[:-2], b"Content-Length: 2"]]
    assert (reader.done, reader.length) == (True, 2)
