"""A bucket gives its burst, then its rate, and nothing to a clock that runs backwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.bucket import TokenBucket


def test_a_burst_then_the_rate() -> None:
    bucket = TokenBucket(rate=2, burst=3)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(1.0) for _ in range(3)] == [True, True, False]


@given(st.lists(st.floats(-5, 5), max_size=200))
def test_never_more_than_burst_and_rate_allow(steps: list[float]) -> None:
    bucket = TokenBucket(rate=3, burst=4)
    now, forward, taken = 0.0, 0.0, 0
    for step in steps:
        now += step
        forward += max(step, 0.0)
        taken += bucket.take(now)
        assert taken <= 4 + 3 * forward + 1e-6
