"""The changes of an overlay, carried out on the host's tree, give what the session saw: checked against a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.overlay_changes import (
    ADDED,
    CHANGED,
    FILE,
    FOLDER,
    LINK,
    MODE,
    OTHER,
    REMOVED,
    WHITEOUT,
    Change,
    Node,
    above,
    compare,
    folded,
    grouped,
    with_attributes,
)

Tree = dict[str, Node]
names = st.sampled_from("abc")
# The size stands for the content of a file.
leaves = st.one_of(
    st.builds(Node, st.just(FILE), st.sampled_from([0o644, 0o755]), st.integers(0, 2)),
    st.builds(lambda target: Node(LINK, 0o777, target=target), names),
)
folders = st.builds(Node, st.just(FOLDER), st.sampled_from([0o755, 0o700]))
upper_folders = st.builds(
    lambda mode, opaque: Node(FOLDER, mode, opaque=opaque), st.sampled_from([0o755, 0o700]), st.booleans()
)


def trees(leaf: st.SearchStrategy[Node], folder: st.SearchStrategy[Node]) -> st.SearchStrategy[Tree]:
    """Trees of at most three levels."""

    def grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        branch = st.tuples(folder, inner).map(
            lambda pair: {"": pair[0], **{f"/{path}": node for path, node in pair[1].items()}}
        )
        twigs = st.dictionaries(names, st.one_of(leaf.map(lambda node: {"": node}), branch), max_size=3)
        return twigs.map(
            lambda tree: {f"{name}{path}": node for name, below in tree.items() for path, node in below.items()}
        )

    return grown(grown(grown(st.just({}))))


hosts = trees(leaves, folders)
uppers = trees(st.one_of(leaves, st.just(Node(WHITEOUT))), upper_folders)


def seen(upper: Tree, host: Tree) -> Tree:
    """The model: what overlayfs shows, folder by folder."""

    def inside(tree: Tree, folder: str) -> Tree:
        return {path[len(folder) + 1 :]: node for path, node in tree.items() if path.startswith(f"{folder}/")}

    shown: Tree = {}
    tops = {path for path in (*upper, *host) if "/" not in path}
    for top in tops:
        new, old = upper.get(top), host.get(top)
        if new is None:
            assert old is not None
            shown |= {top: old, **{f"{top}/{path}": node for path, node in inside(host, top).items()}}
        elif new.kind == FOLDER:
            merged = old is not None and old.kind == FOLDER and not new.opaque
            below = seen(inside(upper, top), inside(host, top) if merged else {})
            shown |= {top: Node(FOLDER, new.mode), **{f"{top}/{path}": node for path, node in below.items()}}
        elif new.kind != WHITEOUT:
            shown[top] = new
    return shown


def same_files(upper: Tree, host: Tree) -> frozenset[str]:
    return frozenset(path for path, node in upper.items() if path in host and host[path].size == node.size)


def carried_out(changes: list[Change], upper: Tree, host: Tree) -> Tree:
    result = dict(host)
    for change in changes:
        if change.action == REMOVED:
            del result[change.path]
        else:
            node = upper[change.path]
            result[change.path] = Node(node.kind, node.mode, node.size, target=node.target)
    return result


@given(uppers, hosts)
def test_the_changes_give_what_the_session_saw(upper: Tree, host: Tree) -> None:
    changes = compare(upper, host, same_files(upper, host))
    assert carried_out(changes, upper, host) == seen(upper, host)
    assert len({change.path for change in changes}) == len(changes)
    assert changes == sorted(changes, key=lambda change: change.path.split("/"))


@given(uppers, hosts)
def test_every_change_changes_something(upper: Tree, host: Tree) -> None:
    for change in compare(upper, host, same_files(upper, host)):
        new = upper.get(change.path)
        if change.action == REMOVED:
            assert change.path in host
            assert change.kind == host[change.path].kind
        elif change.action == ADDED:
            assert change.path not in host
        else:
            assert new is not None
            assert new != host[change.path]


@given(uppers, hosts)
def test_folded_changes_leave_out_only_what_a_removed_folder_held(upper: Tree, host: Tree) -> None:
    changes = compare(upper, host, same_files(upper, host))
    kept = folded(changes)
    removed = {change.path for change in changes if change.action == REMOVED}
    for change in changes:
        if change not in kept:
            assert change.action == REMOVED
            assert above(change.path) in removed


def test_a_file_that_was_only_opened_is_no_change() -> None:
    assert compare({"a": Node(FILE, 0o644, 3)}, {"a": Node(FILE, 0o644, 3)}, frozenset("a")) == []
    assert compare({"a": Node(FILE, 0o644, 3)}, {"a": Node(FILE, 0o644, 3)}, frozenset()) == [
        Change("a", CHANGED, FILE)
    ]
    assert compare({"a": Node(FILE, 0o755, 3)}, {"a": Node(FILE, 0o644, 3)}, frozenset("a")) == [
        Change("a", MODE, FILE)
    ]


def test_a_socket_in_the_overlay_is_a_change_of_its_own_kind() -> None:
    assert compare({"s": Node(OTHER)}, {}, frozenset()) == [Change("s", ADDED, OTHER)]


@pytest.mark.parametrize("prefix", ["user.overlay.", "trusted.overlay."])
def test_attributes_of_overlayfs_are_read(prefix: str) -> None:
    folder, file = Node(FOLDER, 0o755), Node(FILE, 0o644)
    assert with_attributes(folder, {f"{prefix}opaque": b"y"}).opaque
    assert not with_attributes(folder, {f"{prefix}opaque": b"x"}).opaque  # it has whiteouts by attribute
    assert with_attributes(file, {f"{prefix}whiteout": b""}).kind == WHITEOUT
    assert with_attributes(file, {f"{prefix}origin": b""}).copied
    for name in ("redirect", "metacopy"):
        assert name in with_attributes(folder, {f"{prefix}{name}": b"/etc"}).fault
    assert with_attributes(file, {"user.mine": b"y", f"{prefix}overlay.redirect": b"/etc"}).fault == ""


@given(uppers, hosts, st.dictionaries(st.sampled_from(["a", "a/b", "a/b/c", "b/a"]), st.sampled_from(["x", "y"])))
def test_grouped_changes_hide_no_note_and_no_file(upper: Tree, host: Tree, notes: dict[str, str]) -> None:
    changes = compare(upper, host, same_files(upper, host))
    groups = grouped(changes, notes)
    files = [change for change in folded(changes) if change.kind != FOLDER]
    assert sum(count + (change.kind != FOLDER) for change, count in groups) == len(files)
    told = {notes.get(change.path) for change, _ in groups}
    assert told >= {notes[change.path] for change in folded(changes) if change.path in notes}


def test_a_new_folder_stands_for_what_is_in_it() -> None:
    folder, file = Node(FOLDER, 0o755), Node(FILE, 0o644)
    upper = {"m": folder, "m/x": folder, "m/x/1": file, "m/x/2": file, "m/x/.git": folder, "m/x/.git/config": file}
    git = {path: "protected" for path in upper if ".git" in path}
    found = grouped(compare(upper, {}, frozenset()), git)
    assert [(change.path, count) for change, count in found] == [("m", 2), ("m/x/.git", 1)]
