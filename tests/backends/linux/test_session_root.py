"""The steps of a session's root: parents before children, nothing made on the host's disk, protection stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.session_root import (
    DEFAULT,
    DENIED,
    HOST,
    MAKE,
    MAX_OPTIONS,
    NAMED,
    OPTIONAL,
    OURS,
    PROJECT,
    PROTECTED,
    READ_ONLY,
    SessionRoot,
)
from netsandbox.errors import UsageError

PATHS = st.lists(st.sampled_from(["a", "b", "c-d", "c"]), min_size=1, max_size=4).map(
    lambda names: "/" + "/".join(names)
)
RANKS = st.sampled_from([DEFAULT, PROJECT, PROTECTED, NAMED, DENIED, OURS])


@st.composite
def roots(draw: st.DrawFn) -> SessionRoot:
    root = SessionRoot()
    for path in draw(st.lists(PATHS, max_size=8)):
        kind = draw(st.sampled_from(["show", "place", "fresh", "link", "folder", "cache", "cover"]))
        if kind == "show":
            root.show(path, writable=draw(st.booleans()), rank=draw(RANKS))
        elif kind == "place":
            root.place("/ours", path, writable=draw(st.booleans()))
        elif kind == "fresh":
            root.fresh(path)
        elif kind == "link":
            root.link("target", path)
        elif kind == "folder":
            root.folder(path)
        elif kind == "cover":
            root.cover("/target", path)
        else:
            root.cache(path, "/upper", path)
    return root


def target(step: tuple[str, int | None, tuple[str, ...]]) -> str:
    operation, _, texts = step
    return texts[1] if operation == "M" else texts[-1]


@given(roots())
def test_a_parent_is_mounted_before_its_children(root: SessionRoot) -> None:
    mounted = [target(step) for step in root.steps() if step[0] in "VMC"]
    for number, path in enumerate(mounted):
        assert not any(path.startswith(f"{later}/") for later in mounted[number + 1 :])


@given(roots())
def test_nothing_is_made_in_a_folder_of_the_host(root: SessionRoot) -> None:
    """A mount point is made only in file systems of the session and in folders of ours."""
    for operation, number, texts in root.steps():
        held = root.holder(target((operation, number, texts)))
        if held is None or held[1].passes:
            continue
        assert operation not in "Y"
        if operation == "V":
            assert number is not None
            assert not number & MAKE


@given(roots())
def test_what_is_read_only_is_mounted_read_only(root: SessionRoot) -> None:
    flags = {texts[1]: number for operation, number, texts in root.steps() if operation == "V"}
    for path, entry in root.entries.items():
        if entry.kind != "show" or entry.writable:
            continue
        held = root.holder(path)
        if path in flags:
            assert (flags[path] or 0) & READ_ONLY
        else:  # left out, because the folder around it is the same
            assert held is not None
            assert not held[1].writable


@given(st.lists(st.tuples(st.booleans(), RANKS), min_size=1, max_size=5))
def test_of_two_entries_the_stronger_counts(given_entries: list[tuple[bool, int]]) -> None:
    root = SessionRoot()
    for writable, rank in given_entries:
        root.show("/a", writable=writable, rank=rank)
    strongest = max(rank for _, rank in given_entries)
    last = [writable for writable, rank in given_entries if rank == strongest][-1]
    assert (root.entries["/a"].rank, root.entries["/a"].writable) == (strongest, last)


def test_a_protected_folder_of_a_writable_project() -> None:
    root = SessionRoot()
    root.show("/p", writable=True, rank=PROJECT)
    root.show("/p/.git/hooks", rank=PROTECTED)
    root.show("/p/src", writable=True, rank=NAMED)
    assert list(root.steps()) == [
        ("V", MAKE, (f"{HOST}/p", "/p")),
        ("V", READ_ONLY, (f"{HOST}/p/.git/hooks", "/p/.git/hooks")),
    ]


def test_only_defaults_may_be_missing() -> None:
    root = SessionRoot()
    root.show("/a")
    root.show("/b", rank=NAMED)
    assert [number for _, number, _ in root.steps()] == [READ_ONLY | MAKE | OPTIONAL, READ_ONLY | MAKE]


def test_a_path_is_shown_by_its_nearest_entry() -> None:
    root = SessionRoot()
    root.show("/p", writable=True)
    root.fresh("/p/tmp")
    root.place("/ours", "/p/home")
    assert root.shown_entry("/p/x") is root.entries["/p"]
    assert root.shown_entry("/p-x") is None
    assert root.shown_entry("/p/tmp/x") is None
    assert root.shown_entry("/p/home/x") is None


@pytest.mark.parametrize(("path", "written"), [("/a,b", "/a\\,b"), ("/a:b", "/a\\:b"), ("/a\\b", "/a\\\\b")])
def test_the_options_of_an_overlay_are_escaped(path: str, written: str) -> None:
    root = SessionRoot()
    root.cache("/lower", path, "/at")
    ((_, _, (lower, options, upper, at)),) = root.steps()
    assert options == f"lowerdir=.,upperdir={HOST}{written}/data,workdir={HOST}{written}/work,userxattr"
    assert (lower, upper, at) == (f"{HOST}/lower", f"{HOST}{path}/data", "/at")


def test_a_path_too_long_for_mount_options_is_an_error() -> None:
    with pytest.raises(UsageError, match="too long"):
        SessionRoot().cache("/lower", "/" + "a" * MAX_OPTIONS, "/a")


def test_a_pin_holds_each_folder_up_to_the_one_that_is_shown() -> None:
    root = SessionRoot()
    root.show("/p", writable=True, rank=PROJECT)
    root.pin("/p/a/b")
    assert [texts[-1] for _, _, texts in root.steps()] == ["/p", "/p/a", "/p/a/b"]
    assert root.entries["/p/a"].writable


@pytest.mark.attack(149)
@pytest.mark.parametrize("rank", [DEFAULT, PROJECT, PROTECTED, NAMED])
@pytest.mark.parametrize("writable", [True, False])
def test_a_pin_holds_a_folder_that_a_rule_names_too(rank: int, *, writable: bool) -> None:
    """A rule that opens what is open already has no mount, so the folder could be moved away with what it holds."""
    root = SessionRoot()
    root.show("/tmp", writable=True, rank=DEFAULT)
    root.show("/tmp/a", writable=writable, rank=rank)
    root.hold("/tmp/a/b/log", OURS)
    assert [texts[-1] for _, _, texts in root.steps()] == ["/tmp", "/tmp/a", "/tmp/a/b", "/tmp/a/b/log"]
    assert [root.entries[path].writable for path in ("/tmp/a", "/tmp/a/b/log")] == [writable, False]


def test_a_cover_is_a_link_and_gives_way_to_what_the_user_names() -> None:
    root = SessionRoot()
    root.show("/p", writable=True, rank=PROJECT)
    root.cover("/copy", "/p/config")
    assert list(root.steps())[-1] == ("A", None, ("/copy", f"{HOST}/p/config", "/p/config"))
    root.show("/p/config", writable=True, rank=NAMED)
    assert root.entries["/p/config"].kind == "show"


def test_what_is_held_is_read_only_and_cannot_be_moved_away() -> None:
    root = SessionRoot()
    root.show("/p", writable=True, rank=PROJECT)
    root.hold("/p/a/b")
    assert (root.entries["/p/a/b"].writable, root.entries["/p/a/b"].rank) == (False, PROTECTED)
    assert root.entries["/p/a"].writable
    root.hold("/p/a/b", OURS)
    assert root.entries["/p/a/b"].rank == OURS


def test_mounts_that_the_host_can_take_away_are_known() -> None:
    root = SessionRoot()
    root.show("/p", writable=True, rank=PROJECT)
    root.place("/ours", "/home", writable=True)
    root.show("/etc")
    root.shield("/etc", "/empty")
    root.show("/p/.envrc", rank=PROTECTED)
    root.show("/p/.git", writable=True, rank=DENIED)  # a pin holds nothing that is read
    root.cover("copy", "/p/.git/config")
    root.fresh("/p/hidden", rank=DENIED)
    root.place("/empty", "/p/secret", rank=DENIED)
    root.place("/empty", "/home/.bashrc", rank=PROTECTED)
    root.place("/empty", "/etc/shadow", rank=DENIED)
    assert sorted(root.mounted_on()) == ["/p/.envrc", "/p/hidden", "/p/secret"]
