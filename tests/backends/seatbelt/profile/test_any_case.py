"""Names in any case, as expressions that mean the same to every matcher."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt.profile.any_case import ITSELF, WITHIN, filters, in_any_case
from netsandbox.errors import UsageError
from tests.seatbelt_model.expressions import checked_regex
from tests.seatbelt_model.profile import load


@pytest.mark.attack(141)
@pytest.mark.parametrize("path", ["/a/.git/hooks", "/a/.GIT/Hooks", "/a/.git/hooks/x", "/a/.gIt/hOOKS/"])
def test_the_name_and_what_is_below_it_match_in_any_case(path: str) -> None:
    assert re.search(in_any_case("/a", ".git/hooks", WITHIN), path)


@pytest.mark.parametrize(
    "path", ["/a/.git/hooksx", "/a/xgit/hooks", "/b/.git/hooks", "/a/b/.git/hooks", "/A/.git/hooks"]
)
def test_other_paths_do_not_match(path: str) -> None:
    assert not re.search(in_any_case("/a", ".git/hooks", WITHIN), path)


def test_a_folder_itself_is_matched_without_what_is_below() -> None:
    assert re.search(in_any_case("/a", ".git", ITSELF), "/a/.GIT")
    assert not re.search(in_any_case("/a", ".git", ITSELF), "/a/.git/index")


@pytest.mark.attack(139)
@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=20))
def test_any_folder_is_matched_by_its_own_expression(folder: str) -> None:
    expression = in_any_case(f"/{folder}", ".vscode", WITHIN)
    assert checked_regex(expression) == expression
    assert re.search(expression, f"/{folder}/.VSCODE/tasks.json")
    assert not any(sign in expression for sign in ('"', "\\"))


@pytest.mark.attack(139)
@given(st.text(st.characters(blacklist_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), max_size=20))
def test_filters_are_read_back_as_as_many_expressions(folder: str) -> None:
    texts = filters(f"/{folder}", (".git", ".idea"), WITHIN)
    (_, rule) = load("\n".join(["(version 1)(deny default)(deny file-write*", *texts, ")"])).checked()
    assert rule.filter is not None
    assert len(rule.filter.parts) == 2


def test_a_folder_too_long_for_an_expression_is_an_error() -> None:
    """INV-1: without it the names of other cases would be open."""
    assert len(filters("/" + "a" * 900, (".git",), WITHIN)) == 1
    with pytest.raises(UsageError, match="too long to protect"):
        filters("/" + "a" * 1020, (".git",), WITHIN)
