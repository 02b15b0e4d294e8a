"""What is noted and said about sessions in the modes `readable` and `open`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.file_view import FileView
from netsandbox.backends.linux.open_folders import remember_open_folders, second_name_notice
from netsandbox.policy.file_rules import OPEN, READABLE, FileRules, PathRule
from netsandbox.runtime.written_folders import is_written, release_written
from tests.rig.views import home

__all__ = ["home"]


@pytest.mark.parametrize("mode", [READABLE, OPEN])
def test_what_a_session_could_write_is_marked(home: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.chdir(home / "app")
    (home / "data").mkdir()
    remember_open_folders(FileRules(mode=mode, allow_write=(PathRule(f"{home}/data", "--rw"),)), {})
    release_written()
    assert is_written(f"{home}/app")
    assert is_written(f"{home}/data")
    assert is_written("/") is (mode == OPEN)


def test_a_second_name_of_a_hidden_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("")
    view = FileView(files=(f"{tmp_path}/key",))
    assert second_name_notice(view) is None
    os.link(tmp_path / "key", tmp_path / "second")
    text = second_name_notice(view)
    assert text is not None
    assert "hard link" in text
