"""Sessions of these tests have their own home: their supervisors are other processes, which nothing patches."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(workshop: Path, private_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty project: sessions with other state homes would disturb one another in a repository."""
    (tmp_path / "app").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "app")
    return tmp_path
