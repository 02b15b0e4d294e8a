"""Filters choose what they say, and times are understood or refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.filters import Filter, host_matches, parse_since
from netsandbox.errors import UsageError

NOW = datetime(2025, 1, 31, 12, 0, tzinfo=UTC)
RECORD = {"ts": "2025-01-31T11:55:00.000000Z", "event": "egress", "verdict": "deny", "host": "www.example.com"}


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("example.com", "example.com", True),
        ("Example.COM.", "example.com", True),
        ("example.com", "www.example.com", False),
        ("*.example.com", "www.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", ".example.com", False),
        ("**.example.com", "example.com", True),
        ("**.example.com", "a.b.example.com", True),
        ("**.example.com", "badexample.com", False),
        ("example.com", None, False),
        ("example.com", 7, False),
    ],
)
def test_host_patterns_mean_what_they_mean_in_rules(pattern: str, host: object, *, matches: bool) -> None:
    assert host_matches(pattern, host) is matches


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("10m", "2025-01-31T11:50:00.000000Z"),
        ("2h", "2025-01-31T10:00:00.000000Z"),
        ("3d", "2025-01-28T12:00:00.000000Z"),
        ("45s", "2025-01-31T11:59:15.000000Z"),
        ("2025-01-30", "2025-01-30T00:00:00.000000Z"),
        ("2025-01-30T10:00:00+02:00", "2025-01-30T08:00:00.000000Z"),
    ],
)
def test_since_takes_spans_and_moments(text: str, stamp: str) -> None:
    assert parse_since(text, NOW) == stamp


@pytest.mark.parametrize("text", ["", "yesterday", "10", "-5m", "1y", "٣m", "999999999d", "10m\n"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write 45s"):
        parse_since(text, NOW)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    try:
        assert len(parse_since(text, NOW)) == 27
    except UsageError:
        pass


def test_every_condition_must_hold() -> None:
    assert Filter()(RECORD)
    assert Filter(denied=True, host="*.example.com", since="2025-01-31T11:50:00.000000Z", event="egress")(RECORD)
    assert not Filter(denied=True)({**RECORD, "verdict": "allow"})
    assert not Filter(host="example.com")(RECORD)
    assert not Filter(since="2025-01-31T11:56:00.000000Z")(RECORD)
    assert not Filter(event="dns")(RECORD)
