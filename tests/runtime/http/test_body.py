"""A body ends where its framing says, passes verbatim, and has exactly one framing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.http.body import CHUNKED, CLOSE, LENGTH, NONE, BodyReader, Framing, framing
from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.head import HeadReader


def framing_of(lines: bytes, version: bytes = b"HTTP/1.1") -> Framing:
    result = HeadReader().feed(b"POST / " + version + b"\r\nHost: a.test\r\n" + lines + b"\r\n")
    assert result is not None
    return framing(result[0])


def outcome(kind: Framing, data: bytes, step: int, *, extensions: bool = False) -> object:
    reader = BodyReader(kind, extensions=extensions)
    forward = b""
    for at in range(0, len(data), step):
        try:
            passed, leftover = reader.feed(data[at : at + step])
        except ProtocolError as error:
            return (error.reason, error.status, error.detail)
        forward += passed
        if reader.done:
            return (forward, leftover + data[at + step :])
    return forward


def chunked(data: bytes, *, extensions: bool = False) -> tuple[bytes, bytes, bool]:
    reader = BodyReader(Framing(CHUNKED), extensions=extensions)
    return (*reader.feed(data), reader.done)


def test_framing_is_none_length_or_chunked() -> None:
    assert framing_of(b"") == Framing(NONE)
    assert framing_of(b"Content-Length: 12\r\n") == Framing(LENGTH, 12)
    assert framing_of(b"content-length:0\r\n") == Framing(LENGTH, 0)
    assert framing_of(b"Transfer-Encoding: Chunked\r\n") == Framing(CHUNKED)
    assert framing_of(b"Content-Length: 9223372036854775807\r\n").length == 2**63 - 1


@pytest.mark.attack(27)
@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 1\r\nContent-Length: 1\r\n",
        b"Content-Length: 1\r\ncontent-length: 2\r\n",
        b"Content-Length: 1, 1\r\n",
    ]
    + [
        b"Content-Length: %s\r\n" % value
        for value in (b"+1", b"-1", b"0x1", b" 1 ", b"", b"1 1", b"1_0", b"01", b"00", b"1.0", b"\xb2")
    ]
    + [
        b"Content-Length: 9223372036854775808\r\n",
        b"Content-Length: " + b"9" * 400 + b"\r\n",
        b"Content-Length : 1\r\n",
    ],
)
def test_one_plain_content_length(lines: bytes) -> None:
    """Attack 27: CL.CL and every spelling that some parser takes for another number."""
    with pytest.raises(ProtocolError) as caught:
        framing_of(lines)
    assert (caught.value.reason, caught.value.status) == ("malformed", 400)


@pytest.mark.attack(28)
@pytest.mark.parametrize(
    "lines",
    [b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"]
    + [b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding:\tchunked\r\n", b"Transfer-Encoding: \x0bchunked\r\n"]
    + [
        b"Transfer-Encoding: %s\r\n" % value
        for value in (b"chunked, identity", b"identity, chunked", b"xchunked", b"identity", b"gzip")
    ]
    + [
        b"Transfer-Encoding: %s\r\n" % value
        for value in (b"gzip, chunked", b"chunked,", b'"chunked"', b"", b"chunked;q=1")
    ]
    + [
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
    ],
)
def test_transfer_encoding_is_chunked_alone(lines: bytes) -> None:
    """Attack 28: CL.TE, TE.CL, TE.TE."""
    with pytest.raises(ProtocolError) as caught:
        framing_of(lines)
    assert (caught.value.reason, caught.value.status) == ("malformed", 400)


@pytest.mark.attack(28)
def test_http_1_0_knows_no_transfer_encoding() -> None:
    """Attack 28."""
    with pytest.raises(ProtocolError):
        framing_of(b"Transfer-Encoding: chunked\r\n", b"HTTP/1.0")


def test_a_counted_body_ends_at_its_count() -> None:
    reader = BodyReader(Framing(LENGTH, 5))
    assert reader.feed(b"abc") == (b"abc", b"")
    assert not reader.done
    assert reader.feed(b"deGET /") == (b"de", b"GET /")
    assert reader.done
    assert reader.feed(b"more") == (b"", b"more")


@pytest.mark.parametrize("kind", [Framing(NONE), Framing(LENGTH, 0)])
def test_an_empty_body_is_done_at_once(kind: Framing) -> None:
    reader = BodyReader(kind)
    assert reader.done
    assert reader.feed(b"next") == (b"", b"next")


def test_a_close_delimited_body_never_ends_by_itself() -> None:
    reader = BodyReader(Framing(CLOSE))
    assert reader.feed(b"anything") == (b"anything", b"")
    assert not reader.done


@pytest.mark.parametrize(
    "body",
    [
        b"0\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"A\r\n0123456789\r\n00a\r\n0123456789\r\n000\r\n\r\n",
        b"1\r\n\n\r\n0\r\nX-Sum: 1\r\n\r\n",
    ],
)
def test_chunks_pass_verbatim(body: bytes) -> None:
    assert chunked(body + b"GET / HTTP/1.1") == (body, b"GET / HTTP/1.1", True)


@pytest.mark.attack(29)
@pytest.mark.parametrize(
    "data",
    [
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhelloX\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"-1\r\n",
        b"+5\r\nhello\r\n",
    ]
    + [
        b"0x5\r\nhello\r\n",
        b" 5\r\nhello\r\n",
        b"5 \r\nhello\r\n",
        b"\r\n",
        b";a\r\n",
        b"5;a=b\r\nhello\r\n",
        b"5;a\r\r\nhello",
        b"g\r\n",
    ]
    + [
        b"FFFFFFFFFFFFFFFF\r\n",
        b"8000000000000000\r\n",
        b"10000000000000000\r\n",
        b"00000000000000005\r\n",
        b"5_0\r\n",
        b"5\0\r\n",
    ]
    + [
        b"0\r\n\n",
        b"0\r\nX: a\n\r\n",
        b"0\r\nX: a\r\n b\r\n\r\n",
        b"0\r\nX : a\r\n\r\n",
        b"0\r\nX: \0\r\n\r\n",
        b"0\r\nGET / HTTP/1.1\r\n\r\n",
    ]
    + [
        b"0\r\n%s: x\r\n\r\n" % name
        for name in (b"Host", b"content-length", b"Transfer-Encoding", b"Connection", b"Upgrade", b"TE")
    ],
)
def test_lenient_chunks_are_refused(data: bytes) -> None:
    """Attack 29: bare LF, extensions, odd sizes, trailers that re-frame or re-route."""
    with pytest.raises(ProtocolError) as caught:
        chunked(data)
    assert (caught.value.reason, caught.value.status) == ("malformed", 400)


@pytest.mark.attack(29)
@pytest.mark.parametrize(
    "data", [b"0" * 300, b"5;" + b"a" * 300, b"0\r\n" + b"X: a\r\n" * 60, b"0\r\nX: " + b"a" * 9000]
)
def test_chunk_lines_and_trailers_are_bounded(data: bytes) -> None:
    """Attack 29."""
    for step in (1, len(data)):
        assert outcome(Framing(CHUNKED), data, step, extensions=True)[0] == "limit"  # type: ignore[index]


@pytest.mark.attack(29)
def test_a_missing_final_crlf_is_no_end() -> None:
    """Attack 29: what has not been understood is withheld, the last chunk's line too."""
    assert chunked(b"1\r\na\r\n0\r\n") == (b"1\r\na\r\n", b"", False)
    assert chunked(b"1\r\na\r\n0\r\nX: y\r\n") == (b"1\r\na\r\n", b"", False)
    assert chunked(b"1\r") == (b"", b"", False)


def test_an_origins_chunk_extensions_pass() -> None:
    body = b"5 ;name=value\r\nhello\r\n0  \r\n\r\n"
    assert chunked(body, extensions=True) == (body, b"", True)
    with pytest.raises(ProtocolError):
        chunked(b"5;a=\0\r\n", extensions=True)


def test_an_error_stays_an_error() -> None:
    for bad in (b"5\n", b"1\r\naXY", b"0\r\nHost: x\r\n\r\n"):
        reader = BodyReader(Framing(CHUNKED))
        with pytest.raises(ProtocolError):
            reader.feed(bad)
        with pytest.raises(ProtocolError):
            reader.feed(b"\r\n\r\n0\r\n\r\n")
        assert not reader.done


@pytest.mark.attack(197)
def test_many_tiny_chunks_in_one_feed_are_linear() -> None:
    """Attack 197: a megabyte of one-byte chunks is not a denial of service."""
    data = b"1\r\na\r\n" * 170_000
    begun = time.process_time()
    assert chunked(data) == (data, b"", False)
    assert time.process_time() - begun < 3


PIECES = st.sampled_from(
    [
        b"0",
        b"1",
        b"5",
        b"a",
        b"\r\n",
        b"\r",
        b"\n",
        b"hello",
        b";x",
        b"X: y",
        b"Host: z",
        b" ",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
    ]
)


@given(st.lists(PIECES, max_size=12).map(b"".join), st.integers(1, 7), st.booleans())
def test_a_body_in_pieces_is_read_like_a_whole_one(data: bytes, step: int, extensions: bool) -> None:
    kind = Framing(CHUNKED)
    results = [outcome(kind, data, size, extensions=extensions) for size in (len(data) or 1, step, 1)]
    assert results[0] == results[1] == results[2]


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=6), st.binary(max_size=10))
def test_any_honest_chunked_body_passes(chunks: list[bytes], rest: bytes) -> None:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    assert outcome(Framing(CHUNKED), body + rest, 1) == (body, rest)


@given(st.integers(1, 50), st.binary(max_size=60), st.integers(1, 9))
def test_counted_bodies_are_cut_alike(length: int, data: bytes, step: int) -> None:
    assert outcome(Framing(LENGTH, length), data, len(data) or 1) == outcome(Framing(LENGTH, length), data, step)


def test_framings_compare_by_value() -> None:
    assert len({Framing(LENGTH, 1), Framing(LENGTH, 1), Framing(LENGTH, 2)}) == 2
    assert repr(Framing(LENGTH, 1)) == "Framing(kind='length', length=1)"
    assert Framing(NONE) != NONE


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 400)), max_size=30), st.binary(min_size=1, max_size=2000))
def test_bytes_that_pass_unread_count_as_those_that_are_fed(moves, body):
    """A relay may move the bytes that are body for certain by itself; the end is found at the same byte."""
    stream = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) + b"NEXT"
    reader, out = BodyReader(Framing(CHUNKED)), b""
    moves = [*moves, (False, len(stream))]
    for unread, size in moves:
        if unread:
            count = min(size, reader.unread)
            out, stream = out + stream[:count], stream[count:]
            if count:
                reader.passed(count)
        else:
            forward, leftover = reader.feed(stream[:size])
            out, stream = out + forward, leftover + stream[size:]
    while not reader.done:
        forward, stream = reader.feed(stream)
        out += forward
    assert (out, stream) == (b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), b"NEXT")
