"""Each path is noted once, crowds as their folder, and the number of notes is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.path_notes import MAX_DEPTH, MAX_SIBLINGS, PathNotes
from netsandbox.policy.file_rules import CHANGE, MAKE, is_within
from netsandbox.policy.path_folding import MANY, EntryLimits

HOME = "/home/me"
LIMITS = EntryLimits(HOME, (f"{HOME}/.ssh",))


def test_a_path_is_noted_once_for_each_thing_that_is_done_there() -> None:
    notes = PathNotes(LIMITS)
    assert notes.add("/srv/a/b", MAKE) == ("/srv/a/b", MAKE)
    assert notes.add("/srv/a/b", MAKE) is None
    assert notes.add("/srv/a/b", CHANGE) == ("/srv/a/b", CHANGE)


def test_a_crowd_is_noted_as_its_folder_and_then_no_more() -> None:
    notes = PathNotes(LIMITS)
    for number in range(MAX_SIBLINGS):
        assert notes.add(f"/srv/a/{number}", MAKE) == (f"/srv/a/{number}", MAKE)
    assert notes.add("/srv/a/more", MAKE) == ("/srv/a", MANY)
    assert notes.add("/srv/a/even/more", MAKE) is None
    assert notes.add("/srv/a", CHANGE) is None
    assert notes.add("/srv/a-not", MAKE) == ("/srv/a-not", MAKE)


def test_a_crowd_of_folders_counts_however_few_lie_in_each() -> None:
    notes = PathNotes(LIMITS)
    noted = [notes.add(f"{HOME}/.npm/sha/{one:02x}/{two}", MAKE) for one in range(100) for two in "ab"]
    assert sum(note is not None for note in noted) == 2 * MAX_SIBLINGS + 1
    assert (f"{HOME}/.npm/sha", MANY) in noted


def test_a_folder_that_may_not_be_opened_never_stands_for_what_is_in_it() -> None:
    notes = PathNotes(LIMITS)
    noted = [notes.add(f"{HOME}/.rc{number}", MAKE) for number in range(5 * MAX_SIBLINGS)]
    assert noted == [(f"{HOME}/.rc{number}", MAKE) for number in range(5 * MAX_SIBLINGS)]


def test_past_the_bound_notes_are_counted() -> None:
    notes = PathNotes(LIMITS, most=3)
    assert [notes.add(f"{HOME}/{number}", MAKE) is not None for number in range(5)] == [True, True, True, False, False]
    assert notes.left_out == 2


@pytest.mark.attack(192)
def test_a_path_of_thousands_of_names_is_noted_as_a_folder_above_it() -> None:
    """Each folder above a path is kept: a few hundred such paths would fill the memory."""
    notes = PathNotes(LIMITS)
    top = "/srv" + "/a" * (MAX_DEPTH - 1)
    assert notes.add(top, MAKE) == (top, MAKE)
    assert notes.add(f"{top}/b", MAKE) == (top, MANY)
    assert notes.add(top + "/a" * 2000, MAKE) is None
    assert max(folder.count("/") for folder in notes._names) < MAX_DEPTH


@given(st.lists(st.lists(st.sampled_from("abcdefghijklmnopqrstuv"), min_size=1, max_size=4), max_size=80))
def test_whatever_comes_is_covered_by_the_notes(ways: list[list[str]]) -> None:
    notes = PathNotes(LIMITS)
    paths = ["/srv/top/" + "/".join(way) for way in ways]
    noted = [note for path in paths if (note := notes.add(path, MAKE)) is not None]
    assert notes.left_out == 0
    assert len(noted) == len(set(noted))
    for path in paths:
        assert (path, MAKE) in noted or any(done == MANY and is_within(path, folder) for folder, done in noted)
