"""Devices of disks, found among files of all kinds."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from netsandbox.backends.namespaces import file_view
from netsandbox.backends.namespaces.disks import disks, is_disk


def test_block_devices_and_their_raw_twins_are_disks_and_terminals_are_not() -> None:
    assert is_disk(stat.S_IFBLK | 0o660, os.makedev(8, 0))
    assert is_disk(stat.S_IFCHR | 0o660, os.makedev(21, 0))
    assert not is_disk(stat.S_IFCHR | 0o666, os.makedev(1, 3))
    assert not is_disk(stat.S_IFREG | 0o666, 0)


def test_folders_are_looked_into_and_links_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mapper").mkdir()
    for name in ("mapper/root", "null"):
        (tmp_path / name).touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    monkeypatch.setattr("netsandbox.backends.namespaces.disks.is_disk", lambda mode, device: stat.S_ISREG(mode))
    assert list(disks(str(tmp_path))) == [str(tmp_path / "mapper" / "root"), str(tmp_path / "null")]


def test_a_folder_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    assert list(disks(str(tmp_path / "absent"))) == []


def test_only_roots_sessions_look_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.backends.namespaces.disks.disks", lambda: iter(["/dev/sda"]))
    monkeypatch.setattr(file_view.os, "geteuid", lambda: 0)
    assert file_view._disks() == ("/dev/sda",)
    monkeypatch.setattr(file_view.os, "geteuid", lambda: 1000)
    assert file_view._disks() == ()
