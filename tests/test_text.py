"""Hostile text cannot reach a terminal unescaped; addresses, shell words and columns are written one way."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.text import (
    MAX_LISTED,
    columns,
    denial_text,
    did_you_mean,
    few,
    join_host_port,
    printable,
    printable_place,
    quoted,
    shell_quoted,
    single_line,
)

ROWS = st.lists(st.tuples(*[st.text("abc", min_size=1, max_size=30)] * 3), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("text", "shown"), [("\x1b[2J", "\\x1b[2J"), ("\u202e", "\\u202e"), ("\U0001f600", "\\U0001f600")]
)
def test_escapes_name_the_character_they_replace(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.attack(172)
@given(st.text(max_size=30), st.none() | st.integers(1, 40))
def test_172_printable_leaves_nothing_but_printable_ascii(text: str, limit: int | None) -> None:
    shown = printable(text, limit)
    assert shown.isascii()
    assert shown.isprintable()
    if text.isascii() and text.isprintable():
        assert shown == (text if limit is None or len(text) <= limit else f"{text[:limit]}...")


@pytest.mark.attack(172)
@given(st.text(max_size=30), st.none() | st.integers(1, 40))
def test_172_a_single_line_keeps_letters_and_nothing_that_a_terminal_obeys(text: str, limit: int | None) -> None:
    shown = single_line(text, limit)
    assert not shown or shown.isprintable()
    if text.isprintable():
        assert shown == (text if limit is None or len(text) <= limit else f"{text[:limit]}…")


@pytest.mark.parametrize(
    ("text", "shown"), [("für/a\x1b[2J", "für/a\\x1b[2J"), ("a\nb", "a\\nb"), ("\u202eevil", "\\u202eevil")]
)
def test_a_single_line_keeps_letters_and_escapes_the_rest(text: str, shown: str) -> None:
    assert single_line(text) == shown


@pytest.mark.attack(172)
@given(st.binary(max_size=300) | st.text(max_size=300))
def test_172_quoted_text_is_short_printable_ascii_in_quotes(raw: bytes | str) -> None:
    shown = quoted(raw)
    assert shown.isascii()
    assert shown.isprintable()
    assert shown[0] in "'\""
    assert shown.endswith(shown[0] if len(raw) <= 100 else f"{shown[0]}...")


def test_only_ipv6_stands_in_brackets_before_a_port() -> None:
    assert join_host_port("127.0.0.1", 3000) == "127.0.0.1:3000"
    assert join_host_port("example.com", "*") == "example.com:*"
    assert join_host_port("::1", 3000) == join_host_port("[::1]", 3000) == "[::1]:3000"


@given(st.text(max_size=30))
def test_shell_words_are_quoted_as_the_standard_library_does(text: str) -> None:
    assert shell_quoted(text) == shlex.quote(text)


@given(ROWS)
def test_every_cell_begins_where_those_above_it_do(rows: list[tuple[str, ...]]) -> None:
    lines = columns(rows)
    second = max(len(row[0]) for row in rows) + 2
    third = second + max(len(row[1]) for row in rows) + 2
    assert [(line[:second].rstrip(), line[second:third].rstrip(), line[third:]) for line in lines] == rows


@given(ROWS, st.integers(1, 60))
def test_with_a_width_no_line_is_longer(rows: list[tuple[str, ...]], width: int) -> None:
    assert all(len(line) <= width for line in columns(rows, width=width, yielding=((1, 4), (0, 0))))


def test_a_column_gives_way_by_a_cut_or_as_a_whole() -> None:
    rows = [("name", "a long sentence", "id"), ("x", "short", "1234")]
    assert columns(rows, width=20, yielding=((1, 8),)) == ["name  a lon...  id", "x     short     1234"]
    assert columns(rows, width=18, yielding=((1, 8),)) == ["name  a lon...  id", "x     short     12"]
    assert columns(rows, width=12, yielding=((1, 0),)) == ["name  id", "x     1234"]
    assert columns([]) == []


def test_for_a_program_nothing_is_cut() -> None:
    lines = columns([("A", "B"), ("x" * 300, "y")], yielding=((0, 0),))
    assert lines == ["A".ljust(300) + "  B", "x" * 300 + "  y"]


@pytest.mark.parametrize(
    ("host", "port", "shown"),
    [
        ("example.com", 443, "example.com:443"),
        ("::1", 80, "[::1]:80"),
        ("a\x1b", None, "a\\x1b"),
        (None, 53, "port 53"),
        ("example.com", 0, "example.com"),
    ],
)
def test_a_place_is_shown_with_what_is_known_of_it(host: object, port: object, shown: str) -> None:
    assert printable_place(host, port) == shown


def test_a_denial_ends_with_its_option_if_there_is_one() -> None:
    assert denial_text("a.test:443", "not-allowed", None) == "denied a.test:443 (not-allowed)"
    assert denial_text("a.test", "x\n", "--a \x1b") == "denied a.test (x\\n); allow it with --a \\x1b"


def test_few_of_many_texts_are_listed() -> None:
    assert few([]) == ""
    assert few(["a", "b"]) == "a, b"
    assert few(map(str, range(MAX_LISTED))) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert few(map(str, range(MAX_LISTED + 2))) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"


def test_the_nearest_name_is_advised_or_what_the_caller_says() -> None:
    assert did_you_mean("summray", ("show", "summary"), "see the list") == "did you mean summary?"
    assert did_you_mean("zzz", iter(("show", "summary")), "see the list") == "see the list"
