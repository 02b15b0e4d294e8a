"""A program that clears its environment stays injected, and so do its children, however they are started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from netsandbox_interpose import library

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WAYS = "execve execve-null execle execvpe fexecve execveat execv execvp execl execlp posix_spawn posix_spawnp vfork"


@pytest.mark.attack(98)
@pytest.mark.parametrize("way", WAYS.split())
def test_an_empty_environment_gets_the_library_back(
    stand_in: Callable[..., Any], program: Callable[..., Path], injected: Run, way: str
) -> None:
    session = stand_in("port")
    done = injected(session.path, program("children"), way, "/usr/bin/env", "-u", "NOTHING")
    expected = {f"LD_PRELOAD={library.LIBRARY}", f"NETSANDBOX_PORT_MAP={session.path}"}
    assert (done.returncode, set(done.stdout.split())) == (0, expected), done.stderr


@pytest.mark.attack(98)
def test_what_the_program_preloads_itself_stays_behind_ours(
    stand_in: Callable[..., Any], program: Callable[..., Path], injected: Run
) -> None:
    session = stand_in("port")
    done = injected(session.path, program("children"), "execve-foreign", "/usr/bin/env")
    assert done.stdout.split() == [
        "A=1",
        f"LD_PRELOAD={library.LIBRARY}:/nonexistent/other.so",
        f"NETSANDBOX_PORT_MAP={session.path}",
    ]


@pytest.mark.attack(98)
def test_a_cleared_environment_changes_nothing_for_a_grandchild(stand_in: Callable[..., Any], injected: Run) -> None:
    session = stand_in("port")
    session.set(session.base + 2, 3000)
    code = "import socket; s = socket.create_server(('127.0.0.1', 3000)); print(s.getsockname()[1])"
    command = ["env", "-i", "/bin/sh", "-c", 'exec env -u LD_PRELOAD "$0" -c "$1"', sys.executable, code]
    done = injected(session.path, *command)
    assert (done.returncode, done.stdout) == (0, "3000\n"), done.stderr
    assert session.requests == []


def test_a_complete_environment_is_handed_on_as_it_is(stand_in: Callable[..., Any], injected: Run) -> None:
    session = stand_in("port")
    done = injected(session.path, "/bin/sh", "-c", "env")
    assert done.stdout.splitlines().count(f"LD_PRELOAD={library.LIBRARY}") == 1
