"""Figures are compared within a round only, and a target says met only of what was measured."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=60))
def test_a_spread_lies_within_its_samples_in_order(bench, samples):
    spread = bench("figures").Spread.of(samples)
    assert min(samples) <= spread.low <= spread.median <= spread.high <= max(samples)
    assert spread.count == len(samples)


def test_ratios_are_taken_within_a_round(bench):
    series = bench("figures").Series()
    for slow, fast in ((10, 5), (200, 100), (6, 3)):  # the second round was a busy one
        series.add("ours", slow)
        series.add("theirs", fast)
    ratio = series.ratio("ours", "theirs")
    assert (ratio.low, ratio.median, ratio.high) == (2, 2, 2)


def test_a_round_in_which_one_side_failed_is_not_compared(bench):
    series = bench("figures").Series()
    for ours, theirs in ((None, 4), (3, None), (6, 2)):
        series.add("ours", ours)
        series.add("theirs", theirs)
    assert series.ratio("ours", "theirs").count == 1
    assert series.ratio("ours", "theirs").median == 3
    assert series.ratio("ours", "nobody") is None


@pytest.mark.parametrize(
    ("actual", "at_least", "met"), [(1, False, True), (1.01, False, False), (1, True, True), (0.9, True, False)]
)
def test_a_target_is_met_up_to_its_limit(bench, actual, at_least, met):
    assert bench("figures").Target("t", 1.0, actual, at_least=at_least).met is met


def test_what_was_not_measured_is_neither_met_nor_missed(bench):
    figures, report = bench("figures"), bench("report")
    result = figures.Result("r")
    result.aim("nothing to compare with", 2, None)
    assert result.targets[0].met is None
    assert report.WORDS[None] == "not compared"


def test_a_contestant_without_figures_is_named(bench):
    figures = bench("figures")
    series, result = figures.Series(), figures.Result("r")
    series.add("absent", None)
    result.table(series, "ms")
    assert not result.rows
    assert result.notes == ["absent: no figures"]
