"""Commands that run in this process have their own home, and a folder without files: ours would call for profiles."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def empty_folder(private_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)


@pytest.fixture
def home_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a project in a home whose parts no variable has moved."""
    folder = tmp_path / "home" / "project"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def mac_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a project, for a user as a Mac has them."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", "/Users/me")
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return folder
