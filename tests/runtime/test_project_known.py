"""Repositories that an earlier session found stay known, whatever a command adds, removes or closes meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.runtime import project
from netsandbox.runtime.project import MAX_FOLDERS, Repositories, all_repositories, find_repositories
from tests.runtime.test_project import home, large

__all__ = ["home"]


def test_a_repository_stays_known_when_a_command_makes_many_folders(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large(home / "p")
    kept, near = f"{home}/kept", f"{home}/p/000/.git"
    Path(near).mkdir()
    assert near in all_repositories(f"{home}/p", kept).found
    monkeypatch.setattr(project, "MAX_LEFT", 4)
    for number in range(MAX_FOLDERS + 8):
        (home / f"p/0-{number:03}").mkdir()  # sorted before
    assert near not in find_repositories(f"{home}/p", MAX_FOLDERS).found
    assert near in all_repositories(f"{home}/p", kept).found


def test_a_repository_of_a_small_project_stays_known_when_it_becomes_too_large(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = home / "p/x/.git"
    known.mkdir(parents=True)
    assert all_repositories(f"{home}/p", f"{home}/kept").found == (str(known),)
    monkeypatch.setattr(project, "MAX_DEEPER", 10)
    monkeypatch.setattr(project, "MAX_LEFT", 4)
    for number in range(MAX_FOLDERS + 50):
        (home / f"p/0-{number:03}/.git").mkdir(parents=True)
    search = all_repositories(f"{home}/p", f"{home}/kept")
    assert not search.is_whole
    assert search.found[0] == str(known)  # the first are protected one by one


def test_a_known_repository_in_a_folder_that_was_closed_stays_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "p/x/y/.git").mkdir(parents=True)
    all_repositories(f"{home}/p", f"{home}/kept")
    real = os.lstat

    def lstat(path: str) -> os.stat_result:
        if path.startswith(f"{home}/p/x/"):
            raise PermissionError
        return real(path)

    empty = Repositories((), (f"{home}/p",), (), is_whole=False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", lstat)
        patch.setattr(os.path, "realpath", str)
        assert project._with_known(empty, f"{home}/kept-known").found == (f"{home}/p/x",)
    assert project._with_known(empty, f"{home}/kept-known").found == (f"{home}/p/x/y/.git",)


def test_a_known_repository_is_not_looked_for_behind_a_link(home: Path) -> None:
    (home / "p/x/.git").mkdir(parents=True)
    (home / "other/.git").mkdir(parents=True)
    assert all_repositories(f"{home}/p", f"{home}/kept").found
    (home / "p/x").rename(home / "p/y")
    (home / "p/x").symlink_to(home / "other")
    assert all_repositories(f"{home}/p", f"{home}/kept").found == (f"{home}/p/y/.git",)


def test_a_known_bare_repository_stays_known_without_its_head_while_it_has_a_configuration(home: Path) -> None:
    for name in ("x/objects", "x/refs"):
        (home / "p" / name).mkdir(parents=True)
    for name in ("x/HEAD", "x/config"):
        (home / "p" / name).write_text("")
    for gone, found_ in (("none", (f"{home}/p/x",)), ("HEAD", (f"{home}/p/x",)), ("config", ())):
        (home / "p/x" / gone).unlink(missing_ok=True)
        assert all_repositories(f"{home}/p", f"{home}/kept").found == found_
