"""Wildcards of path rules, against the standard library's matcher and against made-up folders."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import path_rule
from netsandbox.policy.path_patterns import MAX_MATCHES, MAX_NAMES, TooMany, expand, matches

names = st.text("ab.*?[\n", max_size=8)
FOLDERS = {
    "/home/me": ["code", "c?de", ".ssh"],
    "/home/me/code": ["a", "b", ".hidden", "c.txt"],
    "/home/me/c?de": ["d"],
    "/": ["home", "srv"],
}


def found(text: str, *, dots: bool = False, base: str = "/home/me") -> list[str]:
    rule = path_rule(text, "--allow-read", base, lambda: "/home/me")
    return expand(rule, lambda folder: FOLDERS.get(folder, ()), dots=dots)


@given(names, names)
@example("aaaa", "*a*a*a*b")
def test_it_matches_as_the_standard_library_does(name: str, pattern: str) -> None:
    known = pattern.replace("[", "[[]")  # a bracket is a character here, as in app/[slug]
    assert matches(name, pattern) == fnmatch.fnmatchcase(name, known)


@given(st.text("abc", max_size=6))
def test_every_name_matches_itself_and_a_star(name: str) -> None:
    assert matches(name, name)
    assert matches(name, "*")
    assert matches(name, "?" * len(name))
    assert not matches(name, name + "?")


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not matches("a" * 5000, "a*" * 100 + "b")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("~/code/*", ["/home/me/code/a", "/home/me/code/b", "/home/me/code/c.txt"]),
        ("~/code/*/docs", ["/home/me/code/a/docs", "/home/me/code/b/docs", "/home/me/code/c.txt/docs"]),
        ("~/code/*.txt", ["/home/me/code/c.txt"]),
        ("~/code/.h*", ["/home/me/code/.hidden"]),
        ("~/c?de/?", ["/home/me/c?de/d", "/home/me/code/a", "/home/me/code/b"]),
        ("/s*", ["/srv"]),
        ("code/b*", ["/home/me/code/b"]),
        ("/absent/*", []),
    ],
)
def test_a_rule_stands_for_what_it_matches(text: str, wanted: list[str]) -> None:
    assert found(text) == wanted


def test_a_rule_that_denies_matches_names_with_a_dot() -> None:
    assert "/home/me/code/.hidden" in found("~/code/*", dots=True)


def test_wildcards_in_the_name_of_the_base_are_characters() -> None:
    assert found("*", base="/home/me/c?de") == ["/home/me/c?de/d"]


@given(st.lists(st.sampled_from(["*", "?", "a*", "b", "x?y"]), min_size=1, max_size=4))
def test_matches_lie_where_the_rule_says(parts: list[str]) -> None:
    text = "/".join(["/r", *parts])
    rule = path_rule(text, "--allow-read", "/", lambda: "/")
    paths = [text] if not rule.wild else expand(rule, lambda folder: ["a", "b", "xzy", ".a"], dots=False)
    for path in paths:
        assert path.startswith("/r/")
        assert path.count("/") == text.count("/")


@pytest.mark.parametrize("text", ["**", "~/**/x", "a/**", "*/../x", "a*b**c"])
def test_any_depth_and_the_folder_above_are_no_wildcards(text: str) -> None:
    with pytest.raises(UsageError, match="write a \\* for each folder"):
        path_rule(text, "--deny-read", "/", lambda: "/home/me")


def test_matches_and_names_are_bounded() -> None:
    rule = path_rule("/a/*", "--allow-read", "/", lambda: "/")
    assert len(expand(rule, lambda _: map(str, range(MAX_MATCHES)), dots=False)) == MAX_MATCHES
    with pytest.raises(TooMany):
        expand(rule, lambda _: map(str, range(MAX_MATCHES + 1)), dots=False)
    rare = path_rule("/a/*x", "--allow-read", "/", lambda: "/")
    assert expand(rare, lambda _: map(str, range(MAX_NAMES)), dots=False) == []
    with pytest.raises(TooMany):
        expand(rare, lambda _: map(str, range(MAX_NAMES + 1)), dots=False)
