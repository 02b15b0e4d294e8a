"""Which rules open a request, and what that takes."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.openings import openings
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import connect, file


def found(*rules: str) -> list[tuple[int, str]]:
    profile = load("\n".join(["(version 1) (deny default)", *rules]))
    return [(rule.line, condition) for rule, condition in openings(profile.rules, file("file-read-data", "/a/b"))]


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        (['(allow file-read* (subpath "/a"))'], [2]),
        (['(allow file-read* (subpath "/b"))'], []),
        (['(allow file-read* (subpath "/a"))', '(deny file-read* (literal "/a/b"))'], []),
        (["(allow default)"], []),
    ],
)
def test_the_rule_that_opens_it_is_named_without_a_condition(rules: list[str], lines: list[int]) -> None:
    assert found(*rules) == [(line, "") for line in lines]


def test_what_some_models_open_says_what_these_assume() -> None:
    ((line, condition),) = found('(allow file-read-data (subpath "/a"))', '(deny file-read* (subpath "/a"))')
    assert line == 2
    assert condition.startswith(", if a rule on the operation itself beats one on its parent")


def test_two_rules_that_open_it_under_different_models_are_both_named() -> None:
    profile = load('(version 1)(deny default)\n(allow network-outbound (remote tcp "localhost:1"))\n(allow network*)')
    lines = [rule.line for rule, _ in openings(profile.rules, connect("127.0.0.1", 1))]
    assert lines == [3, 2]
