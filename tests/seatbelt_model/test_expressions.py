"""Expressions that every matcher reads alike are taken, all others refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seatbelt_model.expressions import checked_regex
from tests.seatbelt_model.values import ProfileError


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+",
        "((a*)a(c))*",
        "(a|b)*",
        "a*?",
        r"\d",
        r"(.)\1",
        "(?=a)",
        "[[:alpha:]]",
        r"[a\.]",
        "a{",
        "a{,3}",
        "a*a*a*a*a*a*a*",
        "a" * 2001,
    ],
)
def test_an_expression_that_matchers_differ_on_is_refused(text: str) -> None:
    with pytest.raises(ProfileError, match="not judged here"):
        checked_regex(text)


@pytest.mark.parametrize("text", ["(", "[a", "a{2,1}", "*", "[[a]", "[a&&b]"])
def test_a_wrong_expression_is_refused(text: str) -> None:
    with pytest.raises(ProfileError, match=r"is wrong|not judged"):
        checked_regex(text)


@pytest.mark.parametrize(
    "text", ["^/dev/tty", r"\.plist$", "^/a/[^/]+/b$", "^/a(/b)?$", "^/(tmp|var)/", "x{2}", r"^/a\{b", "[]a]"]
)
def test_plain_expressions_are_taken(text: str) -> None:
    assert checked_regex(text) == text


@given(st.text(alphabet="ab^$.*+?|()[]{}\\-,1", max_size=15), st.text(alphabet="ab1", max_size=30))
def test_any_expression_is_taken_or_refused_and_matches_in_no_time(text: str, path: str) -> None:
    try:
        taken = checked_regex(text)
    except ProfileError as error:
        assert "; " in error.text  # noqa: PT017 (either outcome is right)
        return
    re.search(taken, path)
