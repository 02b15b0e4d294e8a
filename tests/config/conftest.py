"""A user with homes of his own, and a project that he is in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.fixture
def project(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = homes / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def says(homes: Path, project: Path) -> Callable[..., None]:
    """says(user=…, project=…): what the two files say"""

    def write(*, user: str | None = None, project_file: str | None = None) -> None:
        if user is not None:
            (homes / "config" / "netsandbox").mkdir(parents=True, exist_ok=True)
            (homes / "config" / "netsandbox" / "config.toml").write_text(user)
        if project_file is not None:
            (project / ".netsandbox.toml").write_text(project_file)

    return write
