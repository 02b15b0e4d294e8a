from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import settings_copies
from netsandbox.backends.linux.settings_copies import settings_copy


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "copies").mkdir()
    return str(tmp_path / "copies")


def test_a_copy_has_no_credentials_and_is_made_once_for_each_version(tmp_path: Path, folder: str) -> None:
    file = tmp_path / ".npmrc"
    file.write_text("ignore-scripts=true\n_auth=canary\n")
    copy = settings_copy(str(file), str(file), folder)
    assert Path(copy).read_text() == "ignore-scripts = true\n"
    assert os.stat(copy).st_mode & 0o077 == 0
    before = os.stat(copy).st_ino
    assert (settings_copy(str(file), str(file), folder), os.stat(copy).st_ino) == (copy, before)
    file.write_text("ignore-scripts=false\n")
    assert Path(settings_copy(str(file), str(file), folder)).read_text() == "ignore-scripts = false\n"


def test_a_file_is_read_in_bounds_and_as_text(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".npmrc"
    file.write_bytes(b"a=\xff\n")
    with pytest.raises(ValueError, match="decode"):
        settings_copy(str(file), str(file), folder)
    file.write_text("a=" + "x" * 100)
    monkeypatch.setattr(settings_copies, "MAX_SETTINGS", 50)
    with pytest.raises(OSError, match="too large"):
        settings_copy(str(file), str(file), folder)
    assert os.listdir(folder) == []
