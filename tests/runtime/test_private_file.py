"""What is kept for later is ours alone, and is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.runtime.private_file import content, make_room, replace, write_new


def test_what_was_put_there_is_read_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    replace(str(file), b"one")
    replace(str(file), b"two")
    assert content(str(file), 100) == b"two"
    assert content(str(file), 2) == b"tw"
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_may_write_is_nothing(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "kept"
    replace(str(file), b"one")
    file.chmod(mode)
    assert content(str(file), 100) == b""
    file.chmod(0o644)
    assert content(str(file), 100) == b"one"


def test_what_somebody_else_has_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept"
    replace(str(file), b"one")
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    assert content(str(file), 100) == b""


def test_a_link_is_not_followed_and_a_pipe_not_waited_for(tmp_path: Path) -> None:
    replace(str(tmp_path / "kept"), b"one")
    (tmp_path / "link").symlink_to("kept")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(OSError, match="symbolic links"):
        content(str(tmp_path / "link"), 100)
    assert content(str(tmp_path / "pipe"), 100) == b""


def test_what_cannot_be_put_there_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace(str(tmp_path / "folder"), b"one")
    assert os.listdir(tmp_path) == ["folder"]
    with pytest.raises(FileNotFoundError):
        replace(str(tmp_path / "missing" / "kept"), b"one")


def test_what_is_written_in_part_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(str(tmp_path / "kept"), b"one")
    monkeypatch.setattr(os, "write", lambda *_: 1)
    with pytest.raises(OSError, match="no room"):
        replace(str(tmp_path / "kept"), b"two")
    assert content(str(tmp_path / "kept"), 100) == b"one"
    assert os.listdir(tmp_path) == ["kept"]


def test_a_new_file_has_its_mode_whatever_the_umask_is(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    before = os.umask(0o077)
    try:
        state = write_new("new", b"one", 0o644, folder)
        with pytest.raises(FileExistsError):
            write_new("new", b"two", 0o644, folder)
    finally:
        os.umask(before)
        os.close(folder)
    assert state.st_mode & 0o777 == 0o644
    assert (tmp_path / "new").read_bytes() == b"one"


def test_the_older_half_makes_room(tmp_path: Path) -> None:
    for age in range(6):
        replace(str(tmp_path / str(age)), b"")
        os.utime(tmp_path / str(age), (100 - age, 100 - age))
    make_room(str(tmp_path), 7)
    assert len(os.listdir(tmp_path)) == 6
    make_room(str(tmp_path), 6)
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2"]
