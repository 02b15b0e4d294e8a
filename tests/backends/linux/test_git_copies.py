"""Configuration files of git on the host; test_git_files.py has the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.git_copies import MAX_CONFIG, make, read_file, unlock
from netsandbox.backends.linux.private_folders import open_folder


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "large"])
def test_only_a_plain_file_is_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "plain").write_text("x")
    path = tmp_path / "config"
    if kind == "link":
        path.symlink_to("plain")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(bytes(MAX_CONFIG + 1))
    assert read_file(str(tmp_path / "plain")) == b"x"
    with pytest.raises(OSError, match=r"."):
        read_file(str(path))


def test_a_file_is_made_whole_and_replaces_none(tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path))
    make(folder, "commondir", b".\n")
    with pytest.raises(FileExistsError):
        make(folder, "commondir", b"x")
    os.close(folder)
    assert (tmp_path / "commondir").read_bytes() == b".\n"
    assert os.listdir(tmp_path) == ["commondir"]


def test_rights_to_a_folder_are_given_back_and_a_link_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir(0)
    (tmp_path / "link").symlink_to("closed")
    monkeypatch.setattr(os, "access", lambda path, mode: bool(os.stat(path).st_mode & 0o500))  # as for any user
    assert not unlock(str(tmp_path / "link"))
    assert unlock(str(tmp_path / "closed"))
    assert not unlock(str(tmp_path / "closed"))
    assert (tmp_path / "closed").stat().st_mode & 0o777 == 0o700
