"""Filters that cannot match, or not what they seem to."""

from __future__ import annotations

import pytest

from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import load


def closed(*rules: str) -> list[tuple[int, str, str]]:
    found = lint(load("\n".join(["(version 1) (deny default)", *rules])))
    return [(finding.line, finding.severity, finding.check) for finding in found]


@pytest.mark.attack(141)
@pytest.mark.parametrize(
    "filter_",
    [
        '(subpath "/tmp")',
        '(literal "/etc/hosts")',
        '(subpath "/var/folders")',
        '(subpath "/usr/")',
        '(subpath "/usr/../opt")',
        '(literal "/usr//bin")',
        '(regex #"^/tmp/")',
        '(regex #"^/var$")',
    ],
)
def test_an_unresolved_path_is_a_warning_and_in_a_deny_an_error(filter_: str) -> None:
    assert closed(f"(allow file-read* {filter_})") == [(2, "warning", "unresolved")]
    assert closed(f"(deny file-read* {filter_})") == [(2, "error", "unresolved")]


@pytest.mark.parametrize(
    "filter_", ['(subpath "/variable")', '(regex #"^/tmpfile")', '(subpath "/private/tmp")', '(literal "/")']
)
def test_other_paths_are_fine(filter_: str) -> None:
    assert closed(f"(allow file-read* {filter_})") == []


def test_a_path_that_stands_there_in_both_spellings_is_fine() -> None:
    assert closed('(allow file-read* (subpath "/etc/ssl") (subpath "/private/etc/ssl"))') == []


def test_a_link_itself_may_be_looked_at() -> None:
    assert closed('(allow file-read-metadata (literal "/tmp") (literal "/var"))') == []
    assert closed('(allow file-read-metadata (literal "/tmp/x"))') == [(2, "warning", "unresolved")]
    assert closed('(allow file-read-data (literal "/tmp"))') == [(2, "warning", "unresolved")]


def test_the_parts_of_a_path_are_not_joined() -> None:
    assert closed('(deny file-read* (subpath "/Users/me" ".ssh"))') == [(2, "error", "relative")]


@pytest.mark.parametrize(
    "rule",
    [
        '(allow mach-lookup (literal "/a"))',
        '(allow file-read* (remote tcp "localhost:1"))',
        '(allow file-read* (global-name "a"))',
        '(allow signal (subpath "/a"))',
        '(allow mach-lookup (sysctl-name "a"))',
        '(allow file-read* (require-all (literal "/a") (literal "/b")))',
        '(allow file-read* (require-all (subpath "/a") (subpath "/b")))',
        '(allow file-read* (literal "/c") (require-all (subpath "/a") (literal "/b/c")))',
    ],
)
def test_filters_that_never_match(rule: str) -> None:
    assert (2, "warning", "never-matches") in closed(rule)


def test_filters_that_narrow_one_another_are_fine() -> None:
    assert closed('(allow file-read* (require-all (subpath "/a") (subpath "/a/b") (vnode-type DIRECTORY)))') == []
