"""Rules that contradict one another, in whichever order."""

from __future__ import annotations

import pytest

from tests.seatbelt_model import lint_order
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import load


def closed(*rules: str) -> list[tuple[int, str, str]]:
    found = lint(load("\n".join(["(version 1) (deny default)", *rules])))
    return [(finding.line, finding.severity, finding.check) for finding in found]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (
            ['(deny file-read* (subpath "/srv/app/private"))', '(allow file-read* (subpath "/srv/app"))'],
            [(2, "error", "reopened")],
        ),
        (
            ['(deny file-read* (literal "/a") (literal "/b/x"))', '(allow file* (subpath "/b"))'],
            [(2, "error", "reopened")],
        ),
        (["(deny pseudo-tty)", "(allow pseudo-tty)"], [(2, "error", "reopened")]),
        (['(allow file-read* (literal "/a"))', "(deny file-read*)"], [(2, "warning", "disputed")]),
        (['(allow file-read* (literal "/a/b"))', '(deny file* (subpath "/a"))'], [(2, "warning", "overridden")]),
        (['(allow file-read* (literal "/a"))', '(allow file-read* (literal "/a"))'], [(2, "warning", "repeated")]),
        (["(allow process-fork)", "(allow process-fork)"], [(2, "warning", "repeated")]),
        (
            ['(deny file-read* file-write* (literal "/a/b"))', '(allow file-write* (subpath "/a"))'],
            [(2, "error", "reopened")],
        ),
        (
            ['(allow file-read-data (subpath "/a"))', '(deny file-read* (literal "/a/.env"))'],
            [(3, "error", "deny-too-high")],
        ),
        (["(allow file-read-metadata)", '(deny file-read* (subpath "/a"))'], [(3, "error", "deny-too-high")]),
    ],
)
def test_rules_that_contradict_each_other_are_found(rules: list[str], found: list[tuple[int, str, str]]) -> None:
    assert closed(*rules) == found


@pytest.mark.parametrize(
    "rules",
    [
        ['(allow file-read* (subpath "/a"))', '(deny file-read* (subpath "/a/b"))'],
        ['(deny file-read* (subpath "/a"))', '(allow file-read* (subpath "/a/b"))'],
        ['(allow file-read* (literal "/a/b"))', '(allow file-read* (subpath "/a"))'],
        ['(deny file-read* (literal "/a"))', '(deny file* (subpath "/"))'],
        ['(deny file-read* (literal "/a/b"))', '(allow file-read* (subpath "/a"))', '(deny file* (literal "/a/b"))'],
        ["(deny network*)", '(allow network-outbound (remote tcp "localhost:9"))'],
        ['(allow file-read-data (subpath "/a"))', '(deny file-read* file-read-data (subpath "/a/b"))'],
        ["(allow file-read-metadata)", '(deny file-read* file-read-metadata (subpath "/a"))'],
    ],
)
def test_rules_that_complete_one_another_are_fine(rules: list[str]) -> None:
    assert closed(*rules) == []


def test_the_work_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_order, "MAX_COMPARISONS", 20)
    rules = [f'({action} file-read* (literal "/{number}"))' for number in range(6) for action in ("allow", "deny")]
    assert "not-compared" in [check for _, _, check in closed(*rules)]
