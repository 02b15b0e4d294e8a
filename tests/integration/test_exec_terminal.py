"""A second command on a terminal: it has one of the session's own, and the user's terminal never enters the session."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.test_terminal import CTRL_C, CTRL_D, CTRL_Z, INNER_PROMPT, INNER_SHELL, Terminal
from tests.rig.localhost import eventually

JOB = "sh -c 'echo rea\"\"dy; exec sleep 100'"
pytestmark = [pytest.mark.usefixtures("user_namespaces")]


@pytest.fixture
def terminal(netsandbox: Any) -> Iterator[Terminal]:
    """With a session called shop in the background, whose command counts the signals that it gets."""
    script = "trap 'echo hit >> hits' INT QUIT HUP TSTP; while :; do sleep 0.05; done"
    netsandbox.spawn("run", "--name", "shop", "--files", "project", "--", "sh", "-c", script)
    terminal = Terminal(netsandbox)
    eventually(lambda: "shop" in netsandbox("ps").stdout)
    yield terminal
    terminal.shell.close()
    assert not (netsandbox.home().work / "hits").exists()


def test_it_has_a_terminal_of_the_sessions_own_with_the_size_of_the_users(terminal: Terminal) -> None:
    terminal.resize(31, 97)
    script = 'tty; stty size; echo "t""erm=$TERM"; ps -o tty= -p $$; test -w /dev/tty && echo "co""ntrolling"'
    terminal.type(f"TERM=xterm-256color netsandbox exec shop -- sh -c '{script}'\n")
    seen = terminal.see("controlling")
    assert "/dev/pts/0\r\n31 97\r\nterm=xterm-256color\r\npts/0" in seen
    terminal.see("outer> ")  # what is typed before goes to the session
    assert terminal.status() == 0
    terminal.type("stty -a\n")
    assert " icanon" in terminal.see("iexten")  # as it was before


def test_ctrl_c_ends_the_second_command_alone(terminal: Terminal) -> None:
    terminal.type("netsandbox exec shop -- sh -c 'echo rea\"\"dy; exec sleep 100'\n")
    terminal.see("ready")
    terminal.type(CTRL_C)
    terminal.see("outer> ")
    assert terminal.status() == 130


def test_a_resize_reaches_the_program(terminal: Terminal) -> None:
    terminal.resize(24, 80)
    script = 'trap "stty size" WINCH; stty size; while ! read -t 0.05 line; do :; done'
    terminal.type(f"netsandbox exec shop -- bash -c '{script}'\n")
    terminal.see("24 80")
    terminal.resize(31, 97)
    terminal.see("31 97")
    terminal.type("\n")
    terminal.see("outer> ")


def test_a_shell_hangs_up_at_the_end_of_the_session(terminal: Terminal, netsandbox: Any) -> None:
    """An interactive shell ignores SIGTERM; it is not waited for until it is killed."""
    terminal.type(f"netsandbox exec shop -- env {INNER_PROMPT} {INNER_SHELL}\n")
    terminal.see("inner> ")
    terminal.type("trap 'touch hu\"\"ng-up; exit 5' HUP\n")
    terminal.see("inner> ")
    assert netsandbox("stop", "shop").returncode == 0
    terminal.see("outer> ")
    assert terminal.status() == 5
    assert (netsandbox.home().work / "hung-up").exists()


def test_an_interactive_shell_has_job_control(terminal: Terminal) -> None:
    terminal.type(f"netsandbox exec shop -- env {INNER_PROMPT} {INNER_SHELL}\n")
    terminal.see("inner> ")
    terminal.type(f"{JOB}\n")
    terminal.see("ready")
    terminal.type(CTRL_Z)
    terminal.see("Stopped")
    terminal.type("bg; jobs\n")
    terminal.see("Running")
    terminal.type("kill %1; wait %1\n")
    assert terminal.status() == 143
    terminal.type(f"{JOB}\n")
    terminal.see("ready")
    terminal.type(CTRL_C)
    terminal.see("inner> ")
    assert terminal.status() == 130
    terminal.type("exit 3\n")
    terminal.see("outer> ")
    assert terminal.status() == 3
    terminal.type(f"netsandbox exec shop -- env {INNER_PROMPT} {INNER_SHELL}\n")
    terminal.see("inner> ")
    terminal.type(CTRL_D)
    terminal.see("outer> ")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("netsandbox exec shop -- sh -c 'test -t 0 || test -t 1 || echo \"pla\"in; cat' | cat", "plain"),
        ("echo hello | netsandbox exec shop -- sh -c 'test -t 1 || sed s/h/H/'", "Hello"),
        (
            "netsandbox exec shop -- sh -c 'test -t 0 && test -t 1 && ! test -t 2 && echo \"mix\"ed' 2>log || cat log",
            "mixed",
        ),
        ("netsandbox exec shop -- sh -c 'echo \"er\"ror >&2' >/dev/null </dev/null", "error"),
    ],
)
def test_what_is_no_terminal_is_passed_as_it_is_and_a_lone_terminal_is_not(
    terminal: Terminal, line: str, expected: str
) -> None:
    terminal.type(f"{line}\n")
    terminal.see(expected)
    terminal.see("outer> ")
    assert terminal.status() == 0


def test_ctrl_z_stops_a_command_without_a_terminal_too(terminal: Terminal) -> None:
    script = 'echo rea""dy; n=0; while test $n -lt 20; do sleep 0.05; n=$((n+1)); done; echo "do""ne"'
    terminal.type(f"netsandbox exec shop -- sh -c '{script}' | cat\n")
    terminal.see("ready")
    terminal.type(CTRL_Z)
    terminal.see("Stopped")
    terminal.type("fg\n")
    terminal.see("done")


def test_a_window_that_closes_hangs_up(terminal: Terminal, netsandbox: Any) -> None:
    mark = netsandbox.home().work / "hung-up"
    script = f'trap "touch {mark}; exit" HUP; echo rea""dy; while :; do sleep 0.05; done'
    terminal.type(f"netsandbox exec shop -- sh -c '{script}'\n")
    terminal.see("ready")
    for process in terminal.shell.family():
        if "exec shop" in process.command:
            os.kill(process.pid, signal.SIGKILL)
    eventually(mark.exists)
