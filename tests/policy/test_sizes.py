"""Sizes as users write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.sizes import MAX_SIZE, UNITS, parse_size, shown_size


@given(st.integers(1, 10**6), st.sampled_from(sorted(UNITS)))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert parse_size(f"{number}{unit}") == parse_size(f"{number} {unit.upper()}") == number * UNITS[unit]


@given(st.text(max_size=30))
def test_every_other_text_is_none(text: str) -> None:
    size = parse_size(text)
    assert size is None or (0 < size <= MAX_SIZE and text[-1] in "bB")


@pytest.mark.parametrize("text", ["", "10", "MB", "0MB", "-1MB", "1e3MB", "0.0001kB", "1.MB", ".5MB", "1..5MB", "٣MB"])
def test_what_is_no_size(text: str) -> None:
    assert parse_size(text) is None


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567, "1.235 MB"), (10**10, "10 GB"), (10**16, "1e+04 TB")],
)
def test_sizes_in_words(count: int, text: str) -> None:
    assert shown_size(count) == text
