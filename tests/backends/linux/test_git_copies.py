"""Configuration files of git on the host; test_git_files.py has the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.git_copies import MAX_CONFIG, Copied, make, read_file
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


@pytest.mark.parametrize("has_drafts", [True, False])
def test_a_file_is_made_whole_and_replaces_none(tmp_path: Path, *, has_drafts: bool) -> None:
    if has_drafts:
        (tmp_path / "hooks").mkdir()
    folder = open_folder(str(tmp_path))
    make(folder, "commondir", b".\n", f"{tmp_path}/hooks")
    assert (tmp_path / "commondir").read_bytes() == b".\n"
    with pytest.raises(FileExistsError):
        make(folder, "commondir", b"x", f"{tmp_path}/hooks")
    os.close(folder)
    assert not has_drafts or list((tmp_path / "hooks").iterdir()) == []


def test_a_copy_of_another_session_is_known_by_its_second_name(tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    path = tmp_path / "config"
    path.write_text("")
    copied = Copied(str(path), f"{tmp_path}/copy", b"", os.lstat(path), f"{tmp_path}/hooks")
    assert copied.is_own()
    (tmp_path / "new").write_text("")
    (tmp_path / "new").rename(path)
    assert not copied.is_own()
    assert not copied.adopts()
    (tmp_path / f"hooks/netsandbox-{path.stat().st_ino}").hardlink_to(path)
    assert copied.adopts()
    assert copied.is_own()
