"""What is left out of a permitted folder: nothing hidden is covered, and all else that existed is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.broker import carving
from netsandbox.backends.broker.carving import CHANGE, READ, READ_FILE, WRITE, Carved, Permits, carve
from netsandbox.policy.file_rules import is_within

NAMES = st.sampled_from(["a", "b", "ab", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))


def tree(leaves: set[str]) -> dict[str, set[str]]:
    """The names in each folder."""
    found: dict[str, set[str]] = {}
    for leaf in leaves:
        path = leaf
        while path != "/":
            above, _, name = path.rpartition("/")
            path = above or "/"
            found.setdefault(path, set()).add(name)
    return found


@pytest.mark.hypothesis
@given(st.sets(PATHS, max_size=12), st.sets(PATHS, max_size=4), st.sampled_from(["/", "/a", "/a/b"]))
def test_nothing_hidden_is_covered_and_all_else_is(leaves: set[str], hidden: set[str], top: str) -> None:
    folders = tree(leaves)
    found = carve(top, hidden, lambda path: folders.get(path, ()))
    assert found.left_out == ()
    for path in hidden:
        assert not any(is_within(path, permitted) for permitted in found.paths)
        assert not any(is_within(permitted, path) for permitted in found.paths)
    files = [path for path in leaves if path not in folders and is_within(path, top)]
    for path in files:
        if not any(is_within(path, each) or is_within(each, path) for each in hidden):
            assert any(is_within(path, permitted) for permitted in found.paths)


@pytest.mark.hypothesis
@given(st.sets(PATHS, max_size=12), st.sets(PATHS, max_size=4), st.integers(0, 5))
def test_a_bound_only_closes(leaves: set[str], hidden: set[str], most: int) -> None:
    folders = tree(leaves)
    whole = carve("/", hidden, lambda path: folders.get(path, ()))
    bounded = carve("/", hidden, lambda path: folders.get(path, ()), most)
    assert bounded.paths == whole.paths[:most]
    assert bool(bounded.left_out) is (len(whole.paths) > most)


def test_without_anything_hidden_the_folder_is_permitted_and_not_listed() -> None:
    def entries(path: str) -> list[str]:
        raise AssertionError(path)

    assert carve("/a", ("/b", "/ab"), entries) == Carved(("/a",))


def test_a_folder_in_a_hidden_one_has_no_permit() -> None:
    assert carve("/a/b", ("/a",), lambda path: []) == Carved()


@pytest.mark.hypothesis
@given(st.lists(st.tuples(st.sampled_from([READ_FILE, READ, CHANGE, WRITE]), PATHS), max_size=8), PATHS)
def test_permits_that_are_left_out_change_nothing(permits: list[tuple[int, str]], path: str) -> None:
    collected, again = Permits(), Permits()
    for rights, each in permits:
        collected.add(rights, each)
    for rights, each in collected.result():
        again.add(rights, each)
    assert collected.rights_at(path) == again.rights_at(path)
    held = collected.folder_with(CHANGE, path)
    assert (held is not None) is bool(collected.rights_at(path) & CHANGE)
    assert held is None or is_within(path, held)


def test_rights_are_taken_away_everywhere() -> None:
    permits = Permits()
    permits.add(WRITE, "/a", "/b")
    permits.without(CHANGE)
    assert permits.result() == ((READ, "/a"), (READ, "/b"))


def test_no_permit_makes_devices() -> None:
    makes_devices = carving.MAKE_CHAR | carving.MAKE_BLOCK
    assert carving.HANDLED & makes_devices == makes_devices
    assert not any(rights & makes_devices for rights in (carving.READ, carving.WRITE, carving.DEVICE))
