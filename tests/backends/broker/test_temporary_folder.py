"""A private temporary folder: made, locked, removed, and swept if its session was killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.broker import temporary_folder
from netsandbox.backends.broker.temporary_folder import DEFAULT, TemporaryFolder
from netsandbox.errors import HostError

LEFT = "netsandbox-0123456789ab"


def test_it_is_private_and_removed_with_all_in_it(tmp_path: Path) -> None:
    folder = TemporaryFolder(str(tmp_path))
    assert os.path.dirname(folder.path) == os.path.realpath(tmp_path)
    assert os.stat(folder.path).st_mode & 0o777 == 0o700
    assert os.stat(folder.runtime).st_mode & 0o777 == 0o700
    (Path(folder.path) / "deep/er").mkdir(parents=True)
    (Path(folder.path) / "out").symlink_to(tmp_path)
    (tmp_path / "kept").write_text("")
    folder.close()
    folder.close()
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("wanted", ["", "relative", "{tmp}/missing"])
def test_a_useless_folder_is_replaced_by_the_default(wanted: str, tmp_path: Path) -> None:
    folder = TemporaryFolder(wanted.format(tmp=tmp_path))
    assert folder.path.startswith(f"{os.path.realpath(DEFAULT)}/")
    folder.close()


def test_what_a_killed_session_left_is_removed_and_a_running_one_stays(tmp_path: Path) -> None:
    running = TemporaryFolder(str(tmp_path))
    (tmp_path / LEFT).mkdir(0o700)
    (tmp_path / LEFT / "x").write_text("")
    TemporaryFolder(str(tmp_path)).close()
    assert os.listdir(tmp_path) == [os.path.basename(running.path)]
    running.close()


@pytest.mark.parametrize("name", ["netsandbox-notes", "netsandbox-0123456789abc", "netsandbox-0123456789aX", "other"])
def test_what_has_another_name_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(0o700)
    TemporaryFolder(str(tmp_path)).close()
    assert os.listdir(tmp_path) == [name]


def test_a_link_and_a_file_with_such_a_name_stay(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir(0o700)
    (tmp_path / LEFT).symlink_to(tmp_path / "kept")
    (tmp_path / f"{LEFT[:-1]}c").write_text("")
    TemporaryFolder(str(tmp_path)).close()
    assert sorted(os.listdir(tmp_path)) == ["kept", LEFT, f"{LEFT[:-1]}c"]


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, calls = temporary_folder._locked, []

    def swept(path: str) -> int | None:
        calls.append(path)
        if len(calls) == 1:
            os.rmdir(path)
        return locked(path)

    monkeypatch.setattr(temporary_folder, "_locked", swept)
    folder = TemporaryFolder(str(tmp_path))
    assert folder.path == calls[1]
    folder.close()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, mode: int = 0o777) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "mkdir", fail)
    with pytest.raises(HostError, match=r"No space left on device; .*--share-tmp"):
        TemporaryFolder(str(tmp_path))


def test_names_that_are_all_taken_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_folder, "_locked", lambda path: None)
    with pytest.raises(HostError, match="set TMPDIR"):
        TemporaryFolder(str(tmp_path))
