"""Kept output on a terminal: text and colours, and nothing that a terminal would obey."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netsandbox.cli.terminal_text import TerminalText

PARTS = st.sampled_from([b"\x1b", b"[", b"31", b";", b"m", b"J", b"\r", b"\n", b"\t", b"\xc3", b"\xa4", b"\x9b", b"x"])


def whole(data: bytes, *, colours: bool = True) -> str:
    return TerminalText(colours=colours).feed(data, final=True)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain \xc3\xa4\n\tx", "plain ä\n\tx"),
        (b"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        (b"\x1b[38:5:9mred\x1b[m", "\x1b[38:5:9mred\x1b[m"),
        (b"\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),
        (b"\x1b]0;title\x07", r"\x1b]0;title\x07"),
        (b"\x1b[6n\x1bc\x1bP", r"\x1b[6n\x1bc\x1bP"),
        (b"\xc2\x9b31m", r"\x9b31m"),
        (b"\xff\xfe", r"\xff\xfe"),
        (b"10%\r20%\r\nend", "10%\n20%\nend"),
        ("\u202eevil".encode(), r"\u202eevil"),
        (b"\x1b[" + b"1" * 100 + b"m", r"\x1b[" + "1" * 100 + "m"),
        (b"\x1b[31", r"\x1b[31"),
        (b"\r", "\n"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(data: bytes, shown: str) -> None:
    assert whole(data) == shown


def test_without_colours_none_pass() -> None:
    assert whole(b"\x1b[31mred\x1b[0m\x1b[2J", colours=False) == r"red\x1b[2J"


@given(st.lists(PARTS | st.binary(max_size=3), max_size=30).map(b"".join))
@example(b"\x1b[31m\r\n\xc3\xa4")
def test_the_result_does_not_depend_on_how_the_bytes_are_cut(data: bytes) -> None:
    text = TerminalText(colours=True)
    pieces = [text.feed(data[at : at + 1]) for at in range(len(data))]
    joined = "".join(pieces) + text.feed(b"", final=True)
    assert joined == whole(data)
    without = re.sub(r"\x1b\[[0-9;:]*m", "", joined)
    assert all(char in "\n\t" or char.isprintable() for char in without)
