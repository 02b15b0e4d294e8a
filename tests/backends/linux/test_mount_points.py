"""Mount points in a private home: gone with the last session that used them, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.mount_points import MountPoints


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "own/home"
    folder.mkdir(parents=True)
    return folder


def points(home: Path, *paths: str, target: str = "") -> MountPoints:
    made = MountPoints(str(home.parent), str(home))
    made.paths.update(dict.fromkeys(paths, target))
    return made


def test_empty_places_go_with_the_empty_folders_above_them(home: Path) -> None:
    (home / "a/b").mkdir(parents=True)
    (home / "a/b/file").touch()
    (home / "data").mkdir()
    points(home, "a/b/file", "data", "never-made").close()
    assert os.listdir(home) == []


def test_what_a_session_wrote_stays(home: Path) -> None:
    (home / "data").mkdir()
    (home / "data/new").write_text("x")
    (home / "full").write_text("x")
    (home / "a").mkdir()
    (home / "a/file").touch()
    (home / "a/mine").touch()
    points(home, "data", "full", "a/file").close()
    assert sorted(os.listdir(home)) == ["a", "data", "full"]
    assert os.listdir(home / "a") == ["mine"]


def test_a_link_goes_only_if_it_is_ours(home: Path, tmp_path: Path) -> None:
    (home / "data").symlink_to("/srv/data")
    points(home, "data", target="/srv/other").close()
    points(home, "data").close()
    assert os.path.islink(home / "data")
    points(home, "data", target="/srv/data").close()
    assert os.listdir(home) == []


def test_a_link_that_a_session_planted_leads_nowhere(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "b").mkdir(parents=True)
    (home / "a").symlink_to(outside)
    points(home, "a/b").close()
    assert (outside / "b").is_dir()
    assert os.path.islink(home / "a")


def test_a_place_that_another_session_uses_stays_until_that_ends(home: Path) -> None:
    (home / "data").mkdir()
    first, second = points(home, "data"), points(home, "data")
    first.close()
    assert (home / "data").is_dir()
    second.close()
    assert os.listdir(home) == []
