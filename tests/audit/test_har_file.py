"""The file of a HAR is whole JSON after every entry, whatever fails."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit import har_file
from netsandbox.audit.har_entry import opening
from netsandbox.audit.har_file import HarFile
from netsandbox.errors import NetsandboxError


def made(path: Path) -> HarFile:
    return HarFile(str(path), opening("a session", 0.0, "1"))


def entries(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_bytes())["log"]["entries"])


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers()), max_size=5))
def test_the_file_is_whole_after_each_entry(tmp_path_factory: pytest.TempPathFactory, written: list[Any]) -> None:
    path = tmp_path_factory.mktemp("har") / "x.har"
    file = made(path)
    for count in range(len(written) + 1):
        assert entries(path) == written[:count]
        if count < len(written):
            file.add(written[count])
    file.close()
    file.close()


def test_a_har_of_an_earlier_session_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    for name in ("one", "two"):
        file = made(path)
        file.add({"name": name})
        file.close()
    assert entries(path) == [{"name": "two"}]
    assert path.stat().st_mode & 0o777 == 0o600


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    path.write_text('{"log": {}}')
    path.chmod(0o600)
    with pytest.raises(NetsandboxError, match="is not a HAR of netsandbox"):
        made(path)
    assert path.read_text() == '{"log": {}}'
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(NetsandboxError, match="symbolic link"):
        made(tmp_path / "link")


def test_two_sessions_do_not_share_a_file(tmp_path: Path) -> None:
    file = made(tmp_path / "x.har")
    with pytest.raises(NetsandboxError, match="in use by another session"):
        made(tmp_path / "x.har")
    file.close()


def test_a_full_disk_leaves_the_entries_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.har"
    file = made(path)
    file.add({"n": 1})
    real = os.pwrite

    def full(fd: int, data: bytes, position: int) -> int:
        if len(data) > 20:
            real(fd, data[:10], position)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data, position)

    with monkeypatch.context() as patch:
        patch.setattr(har_file.os, "pwrite", full)
        file.add({"n": "x" * 50})
    assert entries(path) == [{"n": 1}]
    file.add({"n": 3})  # the disk has room again, and yet nothing is missing without a word
    assert (file.left_out, file.failure) == (2, "No space left on device")
    assert entries(path) == [{"n": 1}]


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(har_file.os, "pwrite", lambda fd, data, position: real(fd, data[:3], position))
    file = made(tmp_path / "x.har")
    file.add({"n": 1})
    assert entries(tmp_path / "x.har") == [{"n": 1}]


def test_the_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(har_file, "MAX_SIZE", 1000)
    file = made(tmp_path / "x.har")
    for _ in range(20):
        file.add({"n": "x" * 100})
    assert 0 < len(entries(tmp_path / "x.har")) < 10
    assert file.left_out == 20 - len(entries(tmp_path / "x.har"))
