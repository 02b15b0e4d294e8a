"""The command of a session keeps the library where it begins with a shell or env of the system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from netsandbox_interpose.library import PORT_MAP_VARIABLE, PRELOAD

from netsandbox.backends.seatbelt.injected_environment import handed_on

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
