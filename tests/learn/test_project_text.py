"""The project's file is the only one that is written, whatever a command has put in its place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from netsandbox.errors import NetsandboxError
from netsandbox.learn.project_text import ProjectText, project_file_path


def test_a_new_file_is_made_and_an_old_one_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / ".netsandbox.toml"
    project = ProjectText(str(path))
    assert (project.exists, project.text) == (False, "")
    project.write("one\n")
    path.chmod(0o600)
    again = ProjectText(str(path))
    assert (again.exists, again.text) == (True, "one\n")
    again.write("two\n")
    assert path.read_text() == "two\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [".netsandbox.toml"]


@pytest.mark.attack(149)
def test_149_what_was_swapped_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path, victim = tmp_path / ".netsandbox.toml", tmp_path / "victim"
    victim.write_text("mine")
    project = ProjectText(str(path))
    path.symlink_to(victim)
    with pytest.raises(NetsandboxError, match="not a plain file"):
        project.write("x")
    path.unlink()
    path.write_text("planted")
    with pytest.raises(NetsandboxError, match="was changed meanwhile"):
        project.write("x")
    path.unlink()
    (tmp_path / ".netsandbox.toml.new").symlink_to(victim)
    project.write("x")
    assert victim.read_text() == "mine"
    assert path.read_text() == "x"
    assert not path.is_symlink()


@pytest.mark.attack(149)
def test_149_a_folder_that_was_moved_away_is_still_the_one_that_is_written(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    project = ProjectText(str(folder / ".netsandbox.toml"))
    folder.rename(tmp_path / "moved")
    folder.symlink_to(elsewhere)
    project.write("x")
    assert list(elsewhere.iterdir()) == []
    assert (tmp_path / "moved" / ".netsandbox.toml").read_text() == "x"


def test_what_is_no_text_or_no_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / ".netsandbox.toml"
    path.write_bytes(b"\xff")
    assert ProjectText(str(path)).text is None
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(NetsandboxError, match="not a plain file"):
        ProjectText(str(path))
    with pytest.raises(NetsandboxError, match="cannot open"):
        ProjectText(str(tmp_path / "none" / ".netsandbox.toml"))


def test_the_file_belongs_beside_others_or_at_the_top_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "repository" / "src"
    inner.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(inner)
    assert project_file_path() == str(inner / ".netsandbox.toml")
    (tmp_path / "repository" / ".git").mkdir()
    assert project_file_path() == str(tmp_path / "repository" / ".netsandbox.toml")
    (inner / ".sandbox.toml").touch()
    assert project_file_path() == str(inner / ".netsandbox.toml")
    (inner / ".sandbox.toml").unlink()
    monkeypatch.setenv("HOME", str(tmp_path / "repository"))
    assert project_file_path() == str(inner / ".netsandbox.toml")
