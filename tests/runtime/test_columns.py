"""Columns: one below the other, as wide as what stands in them, and as narrow as they are told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netsandbox.runtime.columns import columns

ROWS = st.lists(st.tuples(*[st.text("abc", min_size=1, max_size=30)] * 3), min_size=1, max_size=4)


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
