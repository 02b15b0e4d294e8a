"""The folder of signed copies: whole and ours, or made again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netsandbox.backends.seatbelt import signed_folder
from netsandbox.backends.seatbelt.signing import Parts, signed_home, signed_parts
from tests.rig.signer import all_signed, calls, codesign, installed, paths, program, state

__all__ = ["codesign", "installed", "state"]  # fixtures


def test_a_later_launch_reads_no_copy_and_signs_nothing(installed: Parts, codesign: str, tmp_path: Path) -> None:
    first = signed_parts(installed, codesign)
    kept = [os.stat(path).st_atime_ns for path in paths(first)]
    assert signed_parts(installed, codesign) == first
    assert [os.stat(path).st_atime_ns for path in paths(first)] == kept
    assert len(calls(tmp_path)) == 1


@pytest.mark.parametrize("spoil", ["missing", "link", "mode", "folder"])
def test_whatever_is_missing_or_not_as_it_was_is_made_again(
    installed: Parts, codesign: str, tmp_path: Path, spoil: str
) -> None:
    parts = signed_parts(installed, codesign)
    copy = Path(parts.helper)
    if spoil == "missing":
        copy.unlink()
    elif spoil == "link":
        copy.rename(tmp_path / "elsewhere")
        copy.symlink_to(tmp_path / "elsewhere")
    elif spoil == "folder":
        copy.unlink()
        copy.mkdir()
    else:
        copy.chmod(0o777)
    assert signed_parts(installed, codesign) == parts
    assert all_signed(parts, installed)
    assert not copy.is_symlink()
    assert copy.stat().st_mode & 0o777 == 0o700
    assert len(calls(tmp_path)) == 2


def test_a_signer_that_does_not_answer_is_not_waited_for(
    installed: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed_folder, "PATIENCE", 0.1)
    parts = signed_parts(installed, program(tmp_path / "slow", "#!/bin/sh\nexec sleep 100\n"))
    assert "does not answer" in parts.unsigned
    assert paths(parts) == paths(installed)


@pytest.mark.parametrize("change", ["mode", "link"])
def test_nothing_is_run_from_a_folder_that_others_can_write(
    installed: Parts, codesign: str, state: Path, tmp_path: Path, change: str
) -> None:
    """Though a good copy is there."""
    signed_parts(installed, codesign)
    home = state / "netsandbox-signed"
    if change == "mode":
        home.chmod(0o777)
    else:
        home.rename(tmp_path / "elsewhere")
        home.symlink_to(tmp_path / "elsewhere")
    parts = signed_parts(installed, codesign)
    assert paths(parts) == paths(installed)
    assert "another's" in parts.unsigned


def test_an_install_that_changes_meanwhile_is_not_half_taken(installed: Parts, tmp_path: Path, codesign: str) -> None:
    home = Path(signed_home())
    signed_folder.own_folder(str(home))
    folder = signed_folder.folder_of(str(home), paths(installed))
    Path(installed.library).write_bytes(b"a newer library")
    with pytest.raises(signed_folder.CannotSign, match="being installed"):
        signed_folder.make(folder, paths(installed), codesign)
    assert os.listdir(home) == []


MANY = """
import sys
from netsandbox.backends.seatbelt.signing import Parts, signed_parts
for _ in range(20):
    parts = signed_parts(Parts(*sys.argv[2:]), sys.argv[1])
    assert not parts.unsigned, parts
    for path in (parts.helper, parts.library, parts.module):
        with open(path, "rb") as file:
            assert file.read().endswith(b" signed here")
"""


def test_sessions_that_start_at_once_all_find_whole_copies(installed: Parts, codesign: str, state: Path) -> None:
    command = [sys.executable, "-c", MANY, codesign, *paths(installed)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(6)]
    said = [one.communicate(timeout=60)[1] for one in started]
    assert [one.returncode for one in started] == [0] * 6, said
    (folder,) = os.listdir(state / "netsandbox-signed")
    assert len(os.listdir(state / "netsandbox-signed" / folder)) == 3


def test_whoever_comes_second_takes_what_the_first_made(
    installed: Parts, codesign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = signed_folder._sign

    def sign_while_another_does(program: str, copies: list[str]) -> None:
        real(program, copies)
        monkeypatch.setattr(signed_folder, "_sign", real)
        firsts.append(os.stat(signed_parts(installed, codesign).helper).st_ino)

    firsts: list[int] = []
    monkeypatch.setattr(signed_folder, "_sign", sign_while_another_does)
    parts = signed_parts(installed, codesign)
    assert all_signed(parts, installed)
    assert len(calls(tmp_path)) == 2
    assert [os.stat(parts.helper).st_ino] == firsts
    assert len(os.listdir(signed_home())) == 1


def old(path: Path) -> None:
    then = time.time() - signed_folder.OLD - 10
    os.utime(path, (then, then))


@pytest.mark.parametrize(("aged", "left"), [(True, 1), (False, 2)])
def test_copies_that_no_launch_uses_are_removed_after_a_month(
    installed: Parts, codesign: str, *, aged: bool, left: int
) -> None:
    first = signed_parts(installed, codesign)
    Path(installed.library).write_bytes(b"a newer library")
    if aged:
        old(Path(first.library).parent)
    signed_parts(installed, codesign)
    assert len(os.listdir(signed_home())) == left


def test_copies_that_are_used_stay_however_old(installed: Parts, codesign: str, tmp_path: Path) -> None:
    first = signed_parts(installed, codesign)
    old(Path(first.library).parent)
    assert signed_parts(installed, codesign) == first
    (tmp_path / "other").mkdir()
    other = Parts(*(shutil.copy(path, tmp_path / "other") for path in paths(installed)))
    signed_parts(other, codesign)
    assert all_signed(first, installed)


def test_what_a_launch_that_was_killed_left_is_removed(installed: Parts, codesign: str) -> None:
    home = Path(signed_home())
    (home / ".left").mkdir(parents=True)
    home.chmod(0o700)
    old(home / ".left")
    signed_parts(installed, codesign)
    assert not (home / ".left").exists()
