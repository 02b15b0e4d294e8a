"""What a command changes is recorded by its real path, once, and only where not every session may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from netsandbox.backends.namespaces.file_changes import FileChanges, real_path
from netsandbox.policy.file_rules import CHANGE, FOLDER, MAKE
from netsandbox.policy.path_folding import EntryLimits
from tests.rig.fake_log import FakeLog

CALLER: dict[str, Any] = {"pid": 7, "exe": "/bin/x", "call": "openat"}


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


@pytest.fixture
def changes(log: FakeLog, tmp_path: Path) -> FileChanges:
    (tmp_path / "open").mkdir()
    return FileChanges(log, (str(tmp_path / "open"),), EntryLimits(str(tmp_path)))  # type: ignore[arg-type]


def test_a_change_is_recorded_once_and_decides_nothing(changes: FileChanges, log: FakeLog, tmp_path: Path) -> None:
    for _ in range(2):
        changes.take(f"{tmp_path}/made", MAKE, CALLER)
    (record,) = log.records
    assert (record["event"], record["operation"], record["path"]) == ("file", MAKE, f"{tmp_path}/made")
    assert (record["pid"], record["exe"], "verdict" in record) == (7, "/bin/x", False)


def test_what_every_session_may_write_is_left_out(changes: FileChanges, log: FakeLog, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("open")
    changes.take(f"{tmp_path}/open/x", MAKE, CALLER)
    changes.take(f"{tmp_path}/link/x", MAKE, CALLER)
    assert log.records == []
    changes.take(f"{tmp_path}/link", MAKE, CALLER)  # the link itself
    assert [record["path"] for record in log.records] == [f"{tmp_path}/link"]


def test_a_changed_folder_is_a_folder(changes: FileChanges, log: FakeLog, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    changes.take(f"{tmp_path}/folder", CHANGE, CALLER)
    assert [record["operation"] for record in log.records] == [FOLDER]


def test_links_are_resolved_as_the_kernel_does(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("missing")
    assert real_path(f"{tmp_path}/link", follow=True) == f"{tmp_path}/file"
    assert real_path(f"{tmp_path}/link", follow=False) == f"{tmp_path}/link"
    assert real_path(f"{tmp_path}/dangling", follow=False) == f"{tmp_path}/missing"
    assert real_path(f"{tmp_path}/folder/", follow=False) == f"{tmp_path}/folder"
    assert real_path("/", follow=False) == "/"


def test_what_was_left_out_is_counted(
    changes: FileChanges, log: FakeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes._notes, "_most", 1)
    for name in ("a/x", "b/y", "c/z"):
        changes.take(f"{tmp_path}/{name}", MAKE, CALLER)
    changes.close()
    assert len(log.records) == 2
    assert (log.records[1]["count"], "path" in log.records[1]) == (2, False)
