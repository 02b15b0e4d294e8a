"""Commands that run in this process do so in a folder without files: ours would call for profiles."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
