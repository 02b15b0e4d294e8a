"""Copies that a Mac signs for itself, and what is used where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.backends.seatbelt import signing
from netsandbox.backends.seatbelt.signing import Parts, load_module, signed_home, signed_parts
from tests.rig.signer import SIGNED, all_signed, calls, codesign, installed, paths, program, state

__all__ = ["codesign", "installed", "state"]  # fixtures


def test_the_first_launch_signs_copies_and_leaves_what_was_installed(
    installed: Parts, codesign: str, state: Path, tmp_path: Path
) -> None:
    parts = signed_parts(installed, codesign)
    assert all_signed(parts, installed)
    assert [Path(copy).name for copy in paths(parts)] == [Path(original).name for original in paths(installed)]
    ((*options, first, second, third),) = calls(tmp_path)
    assert options == ["--force", "--sign", "-"]
    assert {Path(file).name for file in (first, second, third)} == {Path(file).name for file in paths(installed)}
    assert all(os.access(copy, os.X_OK) for copy in paths(parts))
    assert SIGNED not in Path(installed.helper).read_bytes()


def test_the_signer_gets_no_variable_of_the_users(
    installed: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """codesign runs the program that CODESIGN_ALLOCATE names, and that may be a project's word."""
    monkeypatch.setenv("CODESIGN_ALLOCATE", program(tmp_path / "planted", f"#!/bin/sh\n: > {tmp_path / 'canary'}\n"))
    script = f'#!/bin/sh\n: > {tmp_path / "asked"}\n[ -z "$CODESIGN_ALLOCATE" ] || "$CODESIGN_ALLOCATE"\n'
    assert signed_parts(installed, program(tmp_path / "signer", script)).unsigned == ""
    assert (tmp_path / "asked").exists()
    assert not (tmp_path / "canary").exists()


def test_the_copies_are_beside_the_state_folder_and_only_ours(installed: Parts, codesign: str, state: Path) -> None:
    """INV-8: the state folder is hidden from the command, the library must not be."""
    parts = signed_parts(installed, codesign)
    home = state / "netsandbox-signed"
    assert signed_home() == str(home)
    assert all(home in Path(copy).parents for copy in paths(parts))
    assert home.stat().st_mode & 0o777 == 0o700
    assert [name for name in os.listdir(home) if name.startswith(".")] == []


def test_another_install_is_signed_anew_and_the_first_ones_copies_stay_for_its_sessions(
    installed: Parts, codesign: str, tmp_path: Path
) -> None:
    first = signed_parts(installed, codesign)
    Path(installed.library).write_bytes(b"a newer library")
    second = signed_parts(installed, codesign)
    assert second.library != first.library
    assert all_signed(second, installed)
    assert Path(first.library).exists()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo one >&2; echo 'no identity found' >&2; exit 1", "no identity found"),
        ("exit 3", "status 3"),
        ("kill -KILL $$", "status -9"),
    ],
)
def test_where_signing_fails_the_installed_files_are_used_and_it_is_told_why(
    installed: Parts, state: Path, tmp_path: Path, script: str, why: str
) -> None:
    parts = signed_parts(installed, program(tmp_path / "failing", f"#!/bin/sh\n{script}\n"))
    assert paths(parts) == paths(installed)
    assert why in parts.unsigned
    assert os.listdir(state / "netsandbox-signed") == []


def test_without_a_signer_the_installed_files_are_used(installed: Parts) -> None:
    parts = signed_parts(installed, "/nowhere/codesign")
    assert paths(parts) == paths(installed)
    assert "/nowhere/codesign" in parts.unsigned


def test_the_next_launch_tries_again(installed: Parts, codesign: str) -> None:
    assert signed_parts(installed, "/nowhere/codesign").unsigned
    assert all_signed(signed_parts(installed, codesign), installed)


def test_where_nothing_can_be_written_the_installed_files_are_used(
    installed: Parts, codesign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There not even root can."""
    monkeypatch.setenv("XDG_STATE_HOME", "/proc" if sys.platform == "linux" else "/System")
    parts = signed_parts(installed, codesign)
    assert paths(parts) == paths(installed)
    assert "/netsandbox-signed" in parts.unsigned


def test_a_file_in_the_folders_place_is_told(installed: Parts, codesign: str, state: Path) -> None:
    state.mkdir()
    (state / "netsandbox-signed").touch()
    assert "netsandbox-signed" in signed_parts(installed, codesign).unsigned


def test_what_was_not_installed_is_not_copied(installed: Parts, codesign: str) -> None:
    os.unlink(installed.library)
    parts = signed_parts(installed, codesign)
    assert parts.library == installed.library
    assert Path(parts.helper).read_bytes().endswith(SIGNED)


def run_python(text: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", text, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_takes_the_module_from_its_copy(tmp_path: Path) -> None:
    pytest.importorskip("netsandbox_interpose._native")
    copy = shutil.copy(signing.MODULE, tmp_path)
    text = (
        "import sys; from netsandbox.backends.seatbelt.signing import load_module\n"
        "load_module(sys.argv[1]); load_module('/other')\n"
        "import netsandbox_interpose._native as native; print(native.__file__, native.lib.NS_MAP_VERSION > 0)"
    )
    assert run_python(text, copy) == f"{copy} True\n"


@pytest.mark.parametrize("content", [None, b"no module"])
def test_a_module_that_cannot_be_loaded_is_left_to_the_import_that_says_so(
    tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, signing.MODULE_NAME, raising=False)
    if content is not None:
        (tmp_path / "_native.abi3.so").write_bytes(content)
    load_module(str(tmp_path / "_native.abi3.so"))
    assert signing.MODULE_NAME not in sys.modules


@pytest.mark.macos
@pytest.mark.skipif(sys.platform != "darwin", reason="asks codesign, which only a Mac has")
def test_this_mac_signs_what_is_installed_and_takes_it() -> None:
    parts = signed_parts()
    assert parts.unsigned == ""
    subprocess.run([signing.CODESIGN, "--verify", "--strict", *paths(parts)], check=True)
    # Without arguments it leaves by itself; a signature that is not taken ends it by a signal.
    for environment in ({}, {"DYLD_INSERT_LIBRARIES": parts.library}):
        assert subprocess.run([parts.helper], env=environment, check=False).returncode in (125, 126)
    text = "import sys; from netsandbox.backends.seatbelt.signing import load_module; load_module(sys.argv[1])\n"
    told = "import netsandbox_interpose._native as native; print(native.__file__)"
    assert run_python(text + told, parts.module) == f"{parts.module}\n"
