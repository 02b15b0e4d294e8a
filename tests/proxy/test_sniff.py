"""The first flight in one word, however it is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.sniff import PASSING, FirstFlight


def whole(data: bytes) -> str | None:
    return FirstFlight("allowed.test").feed(data)


def cut(data: bytes, at: list[int]) -> str | None:
    flight = FirstFlight("allowed.test")
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
        flight = FirstFlight("allowed.test")
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
    flight = FirstFlight("allowed.test")
    flight.feed(data)
    assert flight.held == data
