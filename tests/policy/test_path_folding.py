"""Paths become entries: all that was written is covered, and nothing is opened that was not to be."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.policy.file_rules import CHANGE, FOLDER, MAKE, is_within
from netsandbox.policy.path_folding import (
    MANY,
    ONLY_CHANGED,
    SIBLINGS,
    EntryLimits,
    Folded,
    PathProposal,
    fold_paths,
)

HOME = "/home/me"
SECRETS = (f"{HOME}/.ssh", f"{HOME}/.cargo/credentials", f"{HOME}/.cache/huggingface/token", "/run/secrets")
OURS = (f"{HOME}/.config/netsandbox", f"{HOME}/.local/state/netsandbox")
LIMITS = EntryLimits(HOME, (*SECRETS, *OURS))

names = st.sampled_from(
    [
        ".cache",
        ".cargo",
        ".config",
        ".local",
        ".ssh",
        "state",
        "netsandbox",
        "huggingface",
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
    ]
)
paths = st.builds(
    lambda top, rest: "/".join((top, *rest)),
    st.sampled_from([HOME, "/srv/data", "/home", "", "/run/secrets"]),
    st.lists(names, min_size=1, max_size=5),
)
written = st.lists(st.tuples(paths, st.sampled_from([CHANGE, MAKE, FOLDER, MANY])), max_size=30)


def texts(*done: tuple[str, str], base: str = "/www") -> list[str]:
    return [entry.text(HOME, base) for entry in fold_paths(done, LIMITS).entries]


def test_what_is_made_opens_its_folder_and_what_is_changed_itself() -> None:
    assert texts((f"{HOME}/.tool/log", MAKE), ("/srv/data/db", CHANGE)) == ["~/.tool/", "/srv/data/db"]
    assert texts((f"{HOME}/.tool", FOLDER), (f"{HOME}/.tool/a/b", MAKE), (f"{HOME}/.tool/x", CHANGE)) == ["~/.tool/"]


def test_of_a_cache_the_whole_folder_of_the_tool_is_taken() -> None:
    assert texts((f"{HOME}/.cache/pip/http/a/b/c/f", MAKE), (f"{HOME}/.cache/uv/x", CHANGE)) == [
        "~/.cache/pip/",
        "~/.cache/uv/",
    ]
    assert texts((f"{HOME}/.cache/huggingface/hub/x/f", MAKE)) == ["~/.cache/huggingface/hub/x/"], "a token lies beside"
    assert texts((f"{HOME}/.cache/lone", CHANGE)) == ["~/.cache/lone"]


def test_entries_side_by_side_become_the_folder_above_and_say_so() -> None:
    few = [(f"{HOME}/.tool/store/{number}/f", MAKE) for number in range(SIBLINGS - 1)]
    assert len(texts(*few)) == SIBLINGS - 1
    (entry,) = fold_paths([*few, (f"{HOME}/.tool/store/x/f", MAKE)], LIMITS).entries
    assert entry.text(HOME, "/www") == "~/.tool/store/"
    assert entry.comment() == "4 paths in it: 0, 1, 2, and 1 more"


def test_folding_goes_on_upwards_but_never_to_what_may_not_be_opened() -> None:
    deep = [(f"{HOME}/.tool/{one}/{two}/f", MAKE) for one in "abcd" for two in "efgh"]
    assert texts(*deep) == ["~/.tool/"]
    for above in (HOME, f"{HOME}/.config", f"{HOME}/.cargo", "/srv"):
        beside = [(f"{above}/{name}/f", MAKE) for name in "abcd"]
        assert [entry.path for entry in fold_paths(beside, LIMITS).entries] == [f"{above}/{name}" for name in "abcd"]


def test_a_file_in_a_folder_that_stays_closed_is_named_itself() -> None:
    (entry,) = fold_paths([(f"{HOME}/.toolrc", MAKE)], LIMITS).entries
    assert (entry.text(HOME, "/www"), entry.comment()) == ("~/.toolrc", ONLY_CHANGED)


@pytest.mark.parametrize("path", [f"{HOME}/.bashrc", f"{HOME}/.local/bin/x", f"{HOME}/.config/systemd/user/x"])
def test_what_runs_outside_of_the_sandbox_is_no_entry(path: str) -> None:
    assert fold_paths([(path, CHANGE)], LIMITS) == Folded((), (path,))
    assert LIMITS.runs(path)
    readable = EntryLimits(HOME, LIMITS.closed, started=())
    assert [entry.path for entry in fold_paths([(path, CHANGE)], readable).entries] == [path]


def test_deep_in_a_cache_its_whole_folder_is_taken() -> None:
    written = [(f"{HOME}/.npm/_cacache/index-v5/98/20/x", MAKE), (f"{HOME}/.cargo/registry/index/x/y", MAKE)]
    assert [entry.path for entry in fold_paths(written, LIMITS).entries] == [f"{HOME}/.cargo/registry", f"{HOME}/.npm"]
    deep = [(f"{HOME}/.npm/_cacache/index-v5/98/{number}/x", MAKE) for number in range(6)]
    (entry,) = fold_paths(deep, LIMITS).entries
    assert (entry.path, entry.comment()) == (f"{HOME}/.npm", "")


def test_what_cannot_be_opened_is_left_unless_an_entry_makes_it() -> None:
    alone = [(path, FOLDER) for path in (f"{HOME}/.ssh", f"{HOME}/.cargo", "/top", f"{HOME}/.config/netsandbox/x")]
    assert fold_paths(alone, LIMITS) == Folded((), tuple(sorted(path for path, _ in alone)))
    with_entry = fold_paths([*alone, (f"{HOME}/.cargo/registry/x", MAKE)], LIMITS)
    assert f"{HOME}/.cargo" not in with_entry.left
    assert [entry.path for entry in with_entry.entries] == [f"{HOME}/.cargo/registry"]


@pytest.mark.parametrize(
    ("path", "folder", "text"),
    [
        ("/www", True, "./"),
        ("/www/sub", True, "sub/"),
        ("/www/~", False, "./~"),
        ("/www-old", True, "/www-old/"),
        (f"{HOME}/x", False, "~/x"),
        (f"{HOME}2/x", False, f"{HOME}2/x"),
    ],
)
def test_an_entry_is_written_as_a_person_would(path: str, folder: bool, text: str) -> None:
    assert PathProposal(path, folder).text(HOME, "/www") == text


@given(written)
def test_every_written_path_is_covered_or_left_for_a_reason(done: list[tuple[str, str]]) -> None:
    found = fold_paths(done, LIMITS)
    for path, _ in done:
        covered = any(is_within(path, entry.path) for entry in found.entries)
        made = any(is_within(entry.path, path) for entry in found.entries)  # with the entry that lies in it
        assert covered or path in found.left or made, path
        if LIMITS.permits(path):
            assert covered, path


@given(written)
def test_no_entry_opens_what_stays_closed(done: list[tuple[str, str]]) -> None:
    for entry in fold_paths(done, LIMITS).entries:
        assert entry.path.count("/") >= 2
        assert not is_within(HOME, entry.path)
        for place in (*SECRETS, *OURS):
            assert not is_within(place, entry.path)
            assert not is_within(entry.path, place)


@given(written, st.randoms(use_true_random=False))
def test_folding_knows_no_order_and_no_repeats(done: list[tuple[str, str]], lot: random.Random) -> None:
    mixed = [*done, *done[:5]]
    lot.shuffle(mixed)
    assert fold_paths(mixed, LIMITS) == fold_paths(done, LIMITS)


@given(written)
def test_folding_what_was_folded_changes_nothing(done: list[tuple[str, str]]) -> None:
    once = fold_paths(done, LIMITS)
    twice = fold_paths([(entry.path, FOLDER if entry.folder else CHANGE) for entry in once.entries], LIMITS)
    assert [(entry.path, entry.folder) for entry in twice.entries] == [
        (entry.path, entry.folder) for entry in once.entries
    ]


@given(written)
def test_entries_are_few_and_lie_apart(done: list[tuple[str, str]]) -> None:
    found = [entry.path for entry in fold_paths(done, LIMITS).entries]
    assert not [(one, other) for one in found for other in found if one != other and is_within(one, other)]
    for above in {path.rpartition("/")[0] for path in found}:
        beside = [path for path in found if path.rpartition("/")[0] == above]
        assert len(beside) < SIBLINGS or not LIMITS.permits(above)
