"""Paths are spelled as on the disk, so that a deny matches whatever spelling the user gave."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt import case_paths as module
from netsandbox.backends.seatbelt.case_paths import CasePaths, is_same_name, on_disk, spelled, true_path

DISK = {"/": "/", "/users": "/Users", "/users/me": "/Users/me", "/users/me/.ssh": "/Users/me/.ssh"}


def name_of(path: str) -> str | None:
    """A disk that ignores case."""
    return DISK.get(path.lower())


@pytest.mark.attack(141)
@pytest.mark.parametrize(
    ("given_", "true"),
    [
        ("/USERS/ME", "/Users/me"),
        ("/users/me/.SSH", "/Users/me/.ssh"),
        ("/Users/me", "/Users/me"),
        ("/users/me/New/File", "/Users/me/New/File"),
        ("/users/me/.SSH/id/X", "/Users/me/.ssh/id/X"),
        ("/", "/"),
        ("/Nowhere/at/all", "/Nowhere/at/all"),
    ],
)
def test_what_exists_is_spelled_as_on_the_disk_and_the_rest_is_kept(given_: str, true: str) -> None:
    assert spelled(given_, name_of) == true


@given(st.lists(st.text("aB.", min_size=1, max_size=3), max_size=6))
def test_only_the_spelling_changes_and_a_true_path_stays(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    found = spelled(path, name_of)
    assert found.lower() == path.lower()
    assert spelled(found, name_of) == found


def test_a_folder_that_cannot_be_asked_keeps_the_spelling_it_has(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    assert true_path(str(tmp_path / "link" / "new")) == str(tmp_path.resolve() / "a" / "new")


@pytest.mark.parametrize("command", [None, 9999])
def test_a_name_that_cannot_be_had_is_none(
    tmp_path: Path, command: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "F_GETPATH", command)
    assert on_disk(str(tmp_path)) is None
    assert on_disk(str(tmp_path / "new")) is None


@pytest.mark.macos
@pytest.mark.skipif(sys.platform != "darwin", reason="F_GETPATH is macOS's")
def test_the_kernel_tells_the_name_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "Name").mkdir()
    told = true_path(str(tmp_path / "nAME" / "New"))
    assert told.endswith(("/Name/New", "/nAME/New"))  # the second on a disk that tells case apart
    assert on_disk(str(tmp_path / "Name")) == str(tmp_path.resolve() / "Name")


def test_a_path_is_looked_at_once(tmp_path: Path) -> None:
    known, link = CasePaths(), tmp_path / "link"
    link.symlink_to(tmp_path / "one")
    assert known(str(link)) == true_path(str(tmp_path / "one"))
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert known(str(link)) == true_path(str(tmp_path / "one"))
    assert CasePaths()(str(link)) == true_path(str(tmp_path / "two"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/Users/me/Caf\u00e9", "/users/ME/cafe\u0301", True),
        ("/System/Volumes/Data/Users/me", "/Users/me", True),
        ("/Users/me/a", "/Users/me/b", False),
        ("/Users/me", "/Users/me/b", False),
    ],
)
def test_names_that_a_disk_takes_for_the_same(one: str, other: str, same: bool) -> None:
    assert is_same_name(one, other) is same
