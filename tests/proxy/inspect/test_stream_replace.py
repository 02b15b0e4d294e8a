"""Replacement of texts in a stream: whole, byte by byte, and cut anywhere."""

from __future__ import annotations

import base64
import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_proxy.inspect.stream_replace import StreamReplace

from netsandbox.policy.placeholders import placeholder

VALUE = b"ghp_Ab3dEf6hIj9lMn2p"
INSTEAD = placeholder(VALUE.decode(), os.urandom).encode()
OTHER = b"xAb3dEf6hIj9lMn2pZ"  # has a part of the first in it
OTHER_INSTEAD = placeholder(OTHER.decode(), os.urandom).encode()
PAIRS = {VALUE: INSTEAD, OTHER: OTHER_INSTEAD}
PARTS = st.lists(st.sampled_from([VALUE, OTHER, VALUE[:7], VALUE[3:], OTHER[:9], b"ghp_", b"g", b"\0", b"text"]))


def replaced(parts: list[bytes], pairs: dict[bytes, bytes] = PAIRS) -> bytes:
    search = StreamReplace(pairs)
    return b"".join(map(search.feed, parts)) + search.end()


def single(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@given(PARTS, st.lists(st.integers(0, 400), max_size=8))
def test_it_does_not_matter_where_the_stream_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    wanted = replaced([data])
    places = [0, *sorted(cuts), len(data)]
    assert replaced(single(data)) == wanted
    assert replaced([data[one:two] for one, two in itertools.pairwise(places)]) == wanted
    assert len(wanted) == len(data)
    assert VALUE not in wanted
    assert OTHER not in wanted


@given(st.binary(max_size=300))
def test_other_bytes_pass_as_they_are(data: bytes) -> None:
    assert replaced(single(data)) == data


@given(st.text("ab", max_size=60).map(str.encode), st.text("ab", min_size=1, max_size=6).map(str.encode))
def test_a_search_finds_what_is_there_and_changes_nothing(data: bytes, text: bytes) -> None:
    search = StreamReplace({text: text})
    assert b"".join(map(search.feed, single(data))) == data  # nothing waits
    assert (search.found is not None) == (text in data)


@given(st.data())
def test_what_waits_tells_nothing_of_the_text(data: st.DataObject) -> None:
    """Attack: a server shows what the session wrote, part by part, and what waits would be the right guess."""
    shown = data.draw(st.sampled_from([INSTEAD, OTHER_INSTEAD, base64.b64encode(b"x:" + INSTEAD)]))
    texts = [VALUE, placeholder(VALUE.decode(), os.urandom).encode()]
    if shown == OTHER_INSTEAD:
        texts = [OTHER, placeholder(OTHER.decode(), os.urandom).encode()]
    elif shown != INSTEAD:
        texts = [base64.b64encode(b"x:" + text) for text in texts]
    cuts = st.integers(0, len(shown) - 1)
    pieces = data.draw(st.lists(st.tuples(st.sampled_from([*texts, shown]), cuts), max_size=6))
    guesses = [text[:cut] + end for (text, cut), end in zip(pieces, itertools.cycle((b"", b"\0")), strict=False)]
    if any(text in b"".join(guesses) for text in texts):
        return
    one, two = (StreamReplace({text: shown}) for text in texts)
    assert [one.feed(guess) for guess in guesses] == [two.feed(guess) for guess in guesses]


def test_what_both_have_in_common_does_not_wait() -> None:
    search = StreamReplace({VALUE: INSTEAD})
    assert search.feed(b"text g") == b"text g"
    assert search.feed(b"hp_") == b"hp_"
    assert search.feed(VALUE[4:10]) == b""
    assert search.feed(VALUE[10:] + b"!") == INSTEAD[4:] + b"!"


def test_a_text_that_was_none_is_passed_on() -> None:
    search = StreamReplace({VALUE: INSTEAD})
    assert search.feed(VALUE[:10]) == VALUE[:4]
    assert search.feed(b"-") == VALUE[4:10] + b"-"
    assert search.feed(VALUE[:10]) == VALUE[:4]
    assert search.end() == VALUE[4:10]


@pytest.mark.parametrize("pairs", [{b"": b""}, {b"a": b""}, {b"ab": b"a"}])
def test_lengths_must_agree(pairs: dict[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="another length"):
        StreamReplace(pairs)
