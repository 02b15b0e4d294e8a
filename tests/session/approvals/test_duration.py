"""Times as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.session.approvals.duration import read_duration
from netsandbox.session.approvals.reply import MAX_SECONDS


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400), ("366d", MAX_SECONDS)]
)
def test_a_number_and_a_unit_are_a_time(text: str, seconds: int) -> None:
    assert read_duration(text, "--ttl") == seconds


@pytest.mark.parametrize("text", ["", "s", "30", "0m", "-1h", "1.5h", "1 h", "1w", "1H", "٣m", "367d", "9999999999s"])
def test_anything_else_is_an_error_that_shows_how(text: str) -> None:
    with pytest.raises(UsageError, match="write for instance --ttl 30m, 2h or 1d"):
        read_duration(text, "--ttl")


@given(st.text(max_size=12))
def test_no_text_gives_a_time_beyond_the_bounds(text: str) -> None:
    try:
        seconds = read_duration(text, "--ttl")
    except UsageError:
        return
    assert 1 <= seconds <= MAX_SECONDS
    assert text[-1] in "smhd"
