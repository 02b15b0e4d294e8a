"""Lists of paths, a line each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.config.path_list import added, list_layer, paths_of, removed
from netsandbox.errors import UsageError

paths = st.lists(
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1)
    .map(lambda name: f"/{name}")
    .filter(lambda path: "**" not in path and "/../" not in f"{path}/")
)


def home() -> str:
    return "/home/me"


def listed(data: bytes) -> list[tuple[str, str]]:
    return [(rule.path, rule.origin) for rule in paths_of("list", data, home)]


def test_comments_blanks_and_slashes_at_the_end_say_nothing() -> None:
    data = b"# a comment\n\n  /tmp/  \n~/Downloads\r\n~\t# home\n  # another\n/a#b\n/b  # c # d\n/c d #"
    assert listed(data) == [
        ("/tmp", "list:3"),
        ("/home/me/Downloads", "list:4"),
        ("/home/me", "list:5"),
        ("/a#b", "list:7"),
        ("/b", "list:8"),
        ("/c d", "list:9"),
    ]


def test_a_path_may_have_wildcards() -> None:
    (rule,) = paths_of("list", b"~/code/*/out # of all projects", home)
    assert (rule.path, rule.path[: rule.wild]) == ("/home/me/code/*/out", "/home/me/code")


@pytest.mark.parametrize("line", [b"relative", b"./x", b"~you/x", b"/a\0b", b"\xff", b"path = '/x'", b"/a/**/b"])
def test_what_is_no_path_is_an_error_with_its_line(line: bytes) -> None:
    with pytest.raises(UsageError, match=r"^Failed to parse config file\. File: list\. Line 2: Invalid path format"):
        paths_of("list", b"/fine\n" + line + b"\n", home)


def test_a_list_sets_allow_write_and_an_empty_one_nothing() -> None:
    layer = list_layer("list", b"/a\n/b\n", home)
    (said,) = layer.values.values()
    assert list(layer.values) == [("filesystem", "allow_write")]
    assert said.items == (("/a", "list:1"), ("/b", "list:2"))
    assert list_layer("list", b"# nothing\n", home).values == {}


@given(paths)
def test_what_is_added_is_there_and_what_is_removed_is_not(wanted: list[str]) -> None:
    data = b"# mine"
    for path in wanted:
        data = added(data, path)
    rules = paths_of("list", data, home)
    assert len(rules) == len(wanted)
    assert data.startswith(b"# mine\n" if wanted else b"# mine")
    everything = {int(rule.origin.rpartition(":")[2]) for rule in rules}
    assert paths_of("list", removed(data, everything), home) == ()
    assert removed(data, set()) == data
    assert removed(data, everything).startswith(b"# mine")
