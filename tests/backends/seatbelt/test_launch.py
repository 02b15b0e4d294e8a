"""Whether the helper can be started, and the words that it starts."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
from netsandbox_interpose.library import PORT_MAP_VARIABLE, PRELOAD

from netsandbox.backends.seatbelt import launch
from netsandbox.backends.seatbelt.launch import check_helper, handed_on, helper_trouble, library_trouble
from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.errors import HostError


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_helper_that_runs_is_taken(system: MacSystem) -> None:
    check_helper(system.helper)


def test_without_a_helper_nothing_is_run(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="netsandbox-apply is missing, and nothing is run without it; reinstall"):
        check_helper(str(tmp_path / "none"))


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "library").touch()
    assert library_trouble(str(tmp_path / "library")) == ""
    assert library_trouble(str(tmp_path / "none")) == f"the preload library {tmp_path}/none is missing"


def test_what_keeps_a_helper_from_running_is_named(tmp_path: Path) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_text("")
    other.write_bytes(b"\xcf\xfa\xed\xfe")  # the first bytes of a program for some Mac
    other.chmod(0o755)
    assert helper_trouble(str(tmp_path / "none")).endswith("is missing")
    assert helper_trouble(str(plain)).endswith("cannot be started (Permission denied)")
    assert helper_trouble(script(tmp_path / "killed", "kill -9 $$")).startswith(f"{launch.NAME} was killed by signal 9")
    assert helper_trouble(script(tmp_path / "false", "exit 0")).endswith("does not answer as ours does")
    if sys.platform == "linux":
        assert helper_trouble(str(other)).endswith("is built for another processor")


@pytest.mark.parametrize("number", [errno.ENOEXEC, 86])
def test_both_words_for_another_processor_are_known(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """86 is EBADARCH, which only Darwin has."""

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "posix_spawn", refuse)
    assert helper_trouble("x") == "the helper netsandbox-apply is built for another processor"


SET = f"{PRELOAD.decode()}='/opt/ours' {PORT_MAP_VARIABLE.decode()}='/map'"


@pytest.fixture
def environment(tmp_path: Path) -> dict[bytes, bytes]:
    (tmp_path / "npm").write_text("#!/usr/bin/env node\n")
    (tmp_path / "npm").chmod(0o755)
    path = os.fsencode(tmp_path) + b":/usr/bin:/bin"
    return {b"PATH": path, PRELOAD: b"/opt/ours:/opt/theirs", PORT_MAP_VARIABLE: b"/map"}


def test_shells_and_env_and_its_scripts_are_told(environment: dict[bytes, bytes], tmp_path: Path) -> None:
    words = [f"{PRELOAD.decode()}=/opt/ours", f"{PORT_MAP_VARIABLE.decode()}=/map"]
    npm = str(tmp_path / "npm")
    assert handed_on(["/bin/sh", "-c", "vite", "zero"], environment) == ["/bin/sh", "-c", f"{SET} vite", "zero"]
    assert handed_on(["npm", "run", "dev"], environment) == ["/usr/bin/env", *words, "node", npm, "run", "dev"]
    assert handed_on(["/usr/bin/env", "-i", "node"], environment) == ["/usr/bin/env", "-i", *words, "node"]


def test_anything_else_is_started_as_it_is(environment: dict[bytes, bytes]) -> None:
    for command in (["/bin/ls", "-c", "x"], ["/bin/sh", "script"], ["absent"], ["/absent/sh", "-c", "x"]):
        assert handed_on(command, environment) == command


def test_without_the_library_nothing_is_told(environment: dict[bytes, bytes]) -> None:
    command = ["/bin/sh", "-c", "vite"]
    assert handed_on(command, {**environment, PRELOAD: b""}) == command
    assert handed_on(command, {b"PATH": environment[b"PATH"], PRELOAD: b"/opt/theirs"}) == command
    assert handed_on(command, {**environment, PORT_MAP_VARIABLE: b"/" + b"x" * 1024}) == command
