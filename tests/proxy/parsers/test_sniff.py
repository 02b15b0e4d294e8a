"""The first flight in one word, however it is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.parsers.sniff import PASSING, Sniffer, looks_like_http, looks_like_tls


def whole(data: bytes) -> str | None:
    return Sniffer("allowed.test").feed(data)


def cut(data: bytes, at: list[int]) -> str | None:
    flight = Sniffer("allowed.test")
    marks = [0, *sorted(mark % (len(data) + 1) for mark in at), len(data)]
    for start, end in pairwise(marks):
        if start < end and (word := flight.feed(data[start:end])) is not None:
            return word
    return None


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"GET / HTTP/1.1\r\n", "http"),
        (b"SSH-2.0-x\r\n", "opaque"),
        (b"\0\1\2\3", "opaque"),
        (b"\x16\x03\x01\x00\x00", "tls-unreadable"),
        (b"\x16", None),
        (b"GE", None),
    ],
)
def test_what_a_flight_is(data: bytes, word: str | None) -> None:
    assert whole(data) == word


def test_a_flight_cut_short_is_no_flight() -> None:
    for start, word in ((b"\x16\x03\x01", "tls-unreadable"), (b"GE", "malformed"), (b"", "opaque")):
        flight = Sniffer("allowed.test")
        if start:
            assert flight.feed(start) is None
        assert flight.feed(b"") == word


@pytest.mark.attack(58)
@pytest.mark.attack(59)
@given(
    name=st.one_of(st.none(), st.text("abAB.-_\0 é", max_size=20), st.just("allowed.test")),
    at=st.lists(st.integers(0, 999)),
)
def test_only_the_decided_name_passes_wherever_the_hello_is_cut(
    speak_hello: Any, name: str | None, at: list[int]
) -> None:
    data = speak_hello(name)
    word = cut(data, at)
    assert word == whole(data)
    assert (word in PASSING) == (name == "allowed.test")


@given(data=st.binary(min_size=1, max_size=200), at=st.lists(st.integers(0, 200)))
def test_no_bytes_break_it_and_held_is_what_was_fed(data: bytes, at: list[int]) -> None:
    assert cut(data, at) is None or whole(data) is not None
    flight = Sniffer("allowed.test")
    flight.feed(data)
    assert flight.held == data


# The first bytes say what a connection is, and in doubt they say what is checked most strictly.


@pytest.mark.attack(51)
@pytest.mark.attack(62)
@pytest.mark.parametrize(
    ("first", "tls"),
    [
        (b"", None),
        (b"\x16", True),
        (b"\x16\x03", True),
        (b"\x16\x02", True),
        (b"GET ", False),
        (b"SSH-", False),
        (b"\x00", False),
        (b"\x05", False),
        (b"\x15\x03", True),
        (b"\x14\x03", True),
        (b"\x18\x03", True),
        (b"\x13\x03", False),
        (b"\x80", None),
        (b"\x80.", None),
        (b"\x80.\x01", None),
        (b"\x80.\x01\x03", True),
        (b"\x80.\x01\x00\x02", True),
        (b"\x80.\x02", False),
        (b"\x80.\x01\x07", False),
    ],
)
def test_whatever_a_server_could_take_for_tls_counts_as_tls(first: bytes, tls: bool | None) -> None:
    """Attacks 51 and 62: an alert or an SSLv2 hello in front does not make the connection opaque."""
    assert looks_like_tls(first) is tls


@pytest.mark.attack(51)
@pytest.mark.attack(62)
@pytest.mark.attack(227)
@pytest.mark.parametrize(
    ("first", "http"),
    [
        (b"", None),
        (b"G", None),
        (b"GET", None),
        (b"GET /", True),
        (b"PRI * HTTP/2.0\r\n", True),
        (b"get /", True),
        (b"GET\t/", True),
        (b"X-1 ", None),
        (b"X-1 / http/1.1", True),
        (b"EHLO client.test\r\n", False),
        (b"a1 LOGIN user secret\r\n", False),
        (b"0032git-upload-pack /x.git\0host=allowed.test\0", False),
        (b"get key\r\n", True),
        (b"\r\nGET / ", True),
        (b"\x1cGET / ", True),
        (b"GET\x1c/ HTTP/1.1", True),
        (b"GET\r/ HTTP/1.1", True),
        (b"GET\xa0/ HTTP/1.1", True),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", True),
        (b"ABC http://denied.test/x\r\n", True),
        (b"\n", True),
        (b" GET", True),
        (b"A" * 1023, None),
        (b"A" * 1024, True),
        (b"A" * 30 + b" / HTTP/1.1", True),
        (b"\x00", False),
        (b"\x16\x03", False),
        (b"\xff", None),
        (b"\xff\xfd\x01", False),
        (b"PING\r\n", False),
        (b"GET/", None),
        (b"GET/ HTTP/1.1\r\n", True),
        (b"{", None),
        (b'{"id":1}\n', False),
        (b'{"id": 1, "to": "http://a.test"}\n', False),
        (b"(", None),
        (b"AMQP\0\0\x09\x01", False),
        (b"0\x0c\x02\x01\x01`\x07\x02\x01\x03\x04\0\x80\0", False),
        (b"<?xml version='1.0'?><stream:stream xmlns='http://etherx.jabber.org/streams'>", False),
        (b"<stream:stream to='a.test'", False),
        (b"A:B / HTTP/1.1", True),
        (b"A:B / ", None),
        (b"A:B /\r\n", False),
        (b"<A / HTTP/1.1", True),
        (b"\xc3\xa9 / HTTP/1.1", True),
        (b"MKCOL \0 HTTP/1.1", True),
        (b"MKCOL \0", None),
        (b"MKCOL\t\0 HTTP/1.1", True),
        (b"MKCOL\r/ HTTP/1.1", True),
        (b"MKCOL\r", None),
        (b"MKCOL\r\n", False),
        (b"0032git- \0 HTTP/1.1", True),
        (b"SSH-2.0-OpenSSH_9.6p1 Ubuntu-3\r\n", False),
        (b"SSH-2.0-OpenSSH_9.6\r\n", False),
        (b"SSH-2.0-OpenSSH_9.6p1 Ub", None),
        (b"SSH-2.0-x / HTTP/1.1\r\n", True),
        (b"SSH-2.0- " + b"a" * 300, None),
        (b"SSH-2.0- " + b"a" * 1100, True),
        (b"SSH- / HTTP/1.1", True),
    ],
)
def test_whatever_a_server_could_take_for_http_counts_as_http(first: bytes, http: bool | None) -> None:
    """Attacks 51 and 62: in doubt the strict parser sees it and refuses it."""
    assert looks_like_http(first) is http


@given(st.binary(max_size=300))
def test_a_verdict_of_the_sniffers_does_not_change_with_more_bytes(data: bytes) -> None:
    for sniff in (looks_like_tls, looks_like_http):
        verdicts = [sniff(data[:end]) for end in range(len(data) + 1)]
        known = [verdict for verdict in verdicts if verdict is not None]
        assert verdicts == [None] * (len(verdicts) - len(known)) + known
        assert len(set(known)) <= 1
