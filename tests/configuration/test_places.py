"""Where configuration is looked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.configuration.places import (
    config_home,
    made_config_home,
    project_file,
    trust_folder,
    user_file,
)


def test_the_home_is_xdgs(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config_home() == str(homes / "config" / "netsandbox")
    for ignored in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CONFIG_HOME", ignored)
        assert config_home() == str(homes / "home" / ".config" / "netsandbox")


def test_the_home_is_made_for_the_user_alone(homes: Path) -> None:
    made = made_config_home()
    assert made == config_home()
    assert os.stat(made).st_mode & 0o777 == 0o700
    assert made_config_home() == made


def test_a_home_that_cannot_be_made_is_none(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (homes / "taken").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(homes / "taken"))
    assert made_config_home() is None


def test_the_users_file_is_there_or_not(homes: Path) -> None:
    assert user_file() is None
    made_config_home()
    Path(config_home(), "config.toml").symlink_to("nowhere")
    assert user_file() == str(Path(config_home(), "config.toml")), "a broken link is a mistake to be told, not nothing"


def test_trust_is_kept_where_no_session_sees_it(homes: Path) -> None:
    assert trust_folder() == str(homes / "state" / "netsandbox" / "trust")


def test_a_project_is_found_from_its_folders_below(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".git").mkdir()
    (project / "a" / "b").mkdir(parents=True)
    (project / ".netsandbox.toml").write_text("")
    monkeypatch.chdir(project / "a" / "b")
    assert project_file() == str(project / ".netsandbox.toml")
    (project / "a" / ".netsandbox.toml").write_text("")
    assert project_file() == str(project / "a" / ".netsandbox.toml")


def test_beyond_the_repository_nothing_is_looked_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".netsandbox.toml").write_text("")
    (project / "inner" / ".git").mkdir(parents=True)
    monkeypatch.chdir(project / "inner")
    assert project_file() is None


def test_outside_of_a_repository_only_the_folder_itself_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in /tmp, say, is anybody's."""
    (project / ".netsandbox.toml").write_text("")
    assert project_file() == str(project / ".netsandbox.toml")
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert project_file() is None


def test_a_folder_that_is_gone_has_no_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "gone").mkdir()
    monkeypatch.chdir(project / "gone")
    (project / "gone").rmdir()
    assert project_file() is None
