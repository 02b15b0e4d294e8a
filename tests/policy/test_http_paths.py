"""Paths of requests and their globs."""

from __future__ import annotations

import posixpath
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.http_paths import PathGlob, canonical_path

SEGMENTS = st.lists(st.sampled_from(["a", "b", "ab", "", "a1", "v1"]), min_size=1, max_size=6)
PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "**", "a*", "*b", "a*b", ""]), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "/"),
        ("/v1/users?x=/../y", "/v1/users"),
        ("/%61dmin", "/admin"),
        ("/%7Euser", "/~user"),
        ("/%40scope/name", "/@scope/name"),
        ("/caf%c3%a9", "/caf%C3%A9"),
        ("/a%20b", "/a%20b"),
        ("/v1/", "/v1/"),
        ("/.well-known/x..y", "/.well-known/x..y"),
    ],
)
def test_one_spelling(target: str, path: str) -> None:
    assert canonical_path(target) == path


@pytest.mark.attack(42)
@pytest.mark.parametrize(
    "target",
    [
        "/a/../b", "/a/./b", "/a/..", "/.", "/a//b", "//a", "/a;x=1/b", "/a/%2e%2e/b", "/a/%2E/b", "/a%2fb", "/a%2Fb",
        "/a%5cb", "/a\\b", "/a%252fb", "/a%3Bb", "/a%00b", "/a%0d%0ab", "/a%", "/a%2", "/a%zz", "/a%c0%af", "/a%ff",
        "/a%c3", "/a%c3x", "/a%c3%28", "/\u00e9", "/a b", "/a\x7f", "*", "", "a/b", "https://other.example/", "/a#b",
        "/a%3fb", "/a%23b", "/" + "x" * 20000,
    ],
)  # fmt: skip
def test_paths_that_could_be_read_in_two_ways(target: str) -> None:
    assert canonical_path(target) is None


@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_every_spelling_of_a_segment_is_the_same(text: str) -> None:
    plain, encoded = (
        canonical_path("/" + quote(text, safe="@:!$&'()*+,=~")),
        "".join(f"%{b:02x}" for b in text.encode()),
    )
    assert canonical_path(f"/{encoded}") == plain


@given(st.text(st.sampled_from("/.%2eEfF5cC;\\ab?#*"), max_size=24))
def test_a_server_that_decodes_and_resolves_reads_the_same(text: str) -> None:
    """INV: what is compared names the same resource however often a server decodes it and resolves its segments."""
    path = canonical_path(f"/{text}")
    if path is not None:
        once = unquote(f"/{text}".partition("?")[0])
        assert once == path == unquote(path)
        assert posixpath.normpath(path) == (path.rstrip("/") or "/")


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("/**", ["/", "/a", "/a/b/"], []),
        ("/v1/**", ["/v1", "/v1/", "/v1/a/b"], ["/v10", "/v2/v1/a", "/"]),
        ("/v1/*", ["/v1/a", "/v1/"], ["/v1", "/v1/a/b", "/v1/a/"]),
        ("/*/issues", ["/a/issues"], ["/a/b/issues", "/issues"]),
        ("/**/issues", ["/issues", "/a/b/issues"], ["/issues/1"]),
        ("/a*b*c", ["/abc", "/axbxc"], ["/ab", "/axc", "/abcd"]),
        ("/a/**/b/**/c", ["/a/b/c", "/a/x/b/y/z/c"], ["/a/c", "/a/b"]),
    ],
)
def test_globs(pattern: str, matching: list[str], others: list[str]) -> None:
    glob = PathGlob(pattern)
    assert [path for path in matching if not glob.matches(path)] == []
    assert [path for path in others if glob.matches(path)] == []


def reference(patterns: list[str], segments: list[str]) -> bool:
    if not patterns:
        return not segments
    first, rest = patterns[0], patterns[1:]
    if first == "**":
        return any(reference(rest, segments[count:]) for count in range(len(segments) + 1))
    return bool(segments) and within(first, segments[0]) and reference(rest, segments[1:])


def within(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(within(pattern[1:], text[count:]) for count in range(len(text) + 1))
    return text[:1] == pattern[0] and within(pattern[1:], text[1:])


@given(PATTERNS, SEGMENTS)
def test_globs_match_as_a_plain_definition_does(patterns: list[str], segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    assert PathGlob("/" + "/".join(patterns)).matches(path) == reference(patterns, segments)


def test_a_long_path_takes_no_long_time() -> None:
    assert not PathGlob("/" + "**/a*a*a/" * 20 + "z").matches("/" + "aaaa/" * 3000)
