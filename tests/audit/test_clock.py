"""Stamps are RFC 3339, UTC, with microseconds, and in step with the system's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from netsandbox.audit import clock


def test_a_stamp_is_now() -> None:
    stamp = clock.Clock().stamp()
    assert stamp.endswith("Z")
    assert len(stamp) == 27
    assert abs(datetime.now(UTC) - datetime.fromisoformat(stamp)) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("nanoseconds", "stamp"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_738_324_800_000_001_999, "2025-01-31T12:00:00.000001Z"),
        (1_738_324_799_999_999_999, "2025-01-31T11:59:59.999999Z"),
    ],
)
def test_the_cached_second_follows_the_clock_in_both_directions(
    monkeypatch: pytest.MonkeyPatch, nanoseconds: int, stamp: str
) -> None:
    subject = clock.Clock()
    subject.stamp()
    monkeypatch.setattr(clock.time, "time_ns", lambda: nanoseconds)
    assert subject.stamp() == stamp
