"""Commands that run in this process do so in a folder without files: ours would call for profiles."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)


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
