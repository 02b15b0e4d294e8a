"""A session on a terminal is an ordinary job: Ctrl-C, Ctrl-Z, job control and the window's size work as without it."""

from __future__ import annotations

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig import processes
from tests.rig.command import Spawned
from tests.rig.leftovers import what_stays
from tests.rig.localhost import eventually

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

INNER_PROMPT = "PS1='in''ner> '"
INNER_SHELL = "bash --norc --noprofile --noediting -i"
CTRL_C, CTRL_D, CTRL_Z = "\x03", "\x04", "\x1a"


class Terminal:
    """An interactive bash on a terminal of its own, with `netsandbox` on its PATH."""

    def __init__(self, netsandbox: Any) -> None:
        home = netsandbox.home()
        self.master, slave = pty.openpty()
        os.fchown(slave, home.identity.uid, home.identity.gid)
        folder = _command(home)
        path = f"{folder}:{home.identity.path}"
        environment = home.environment({"PS1": "outer> ", "HISTFILE": "", "PATH": path})
        bash = ["setsid", "--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"]
        process = subprocess.Popen(
            bash, stdin=slave, stdout=slave, stderr=slave, cwd=home.work, env=environment, **home.identity.popen
        )
        os.close(slave)
        self.shell = Spawned(process, home, home.logs(), self.master)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def see(self, text: str) -> str:
        """What came up to TEXT. What is typed is echoed, so TEXT must not stand in a typed line as it is."""
        return self.shell.read_until(text.encode()).decode()

    def status(self) -> int:
        self.type('echo "status""=$?."\n')
        self.see("status=")
        return int(self.see(".").rstrip("."))

    def see_running(self, command: str) -> None:
        """Waits until COMMAND has the terminal: what is typed before that is for the shell."""

        def has_it() -> bool:
            group = os.tcgetpgrp(self.master)
            return command in [process.command.split(" ")[0] for process in self.shell.family() if process.pid == group]

        eventually(has_it)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def inner_shell(self) -> None:
        self.type(f"{INNER_PROMPT} netsandbox run -- {INNER_SHELL}\n")
        self.see("inner> ")


def _command(home: Any) -> Path:
    folder: Path = home.path / "bin"
    folder.mkdir(mode=0o755)
    program = folder / "netsandbox"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(home.identity.python)} -m netsandbox "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture
def terminal(netsandbox: Any) -> Iterator[Terminal]:
    terminal = Terminal(netsandbox)
    yield terminal
    terminal.shell.close()


def states(family: set[processes.Process], word: str) -> set[str]:
    """The states of the processes whose command line holds WORD, but for the session's PID 1, which never stops."""
    wanted = [p for p in family if word in p.command and "netsandbox-init" not in p.command]
    return {Path(f"/proc/{p.pid}/stat").read_text().rpartition(")")[2].split()[0] for p in wanted}


def test_ctrl_c_ends_a_plain_command_with_130(terminal: Terminal) -> None:
    terminal.type("netsandbox run -- sh -c 'echo rea\"\"dy; exec sleep 100'\n")
    terminal.see("ready")
    terminal.type(CTRL_C)
    assert terminal.status() == 130


def test_ctrl_c_stops_a_loop_of_the_outer_shell(terminal: Terminal) -> None:
    """bash leaves a loop only if the command died of the signal; exit status 130 alone would not do."""
    terminal.type("for n in 1 2 3; do netsandbox run -- sh -c 'echo \"round\"$0; exec sleep 100' $n; done\n")
    terminal.see("round1")
    terminal.type(CTRL_C)
    terminal.type('echo "loop""over"\n')
    assert "round2" not in terminal.see("loopover")


def test_a_command_that_handles_ctrl_c_goes_on(terminal: Terminal) -> None:
    script = 'trap "echo cau\\"\\"ght" INT; echo rea""dy; read line; read line; echo "got""=$line"'
    terminal.type(f"netsandbox run -- bash -c {shlex.quote(script)}\n")
    terminal.see("ready")
    terminal.type(CTRL_C)
    terminal.see("caught")
    terminal.type("\nhello\n")
    terminal.see("got=")
    assert terminal.status() == 0


def test_ctrl_z_stops_the_whole_job_and_fg_resumes_it(terminal: Terminal) -> None:
    terminal.type('netsandbox run -- sh -c \'echo rea""dy; read line; echo "got"=$line\'\n')
    terminal.see("ready")
    terminal.type(CTRL_Z)
    terminal.see("Stopped")
    # The shell tells of our leader; the others stop in the same moment, or the next.
    eventually(lambda: states(terminal.shell.family(), "read line") == {"T"})
    terminal.type("fg\n")
    terminal.type("hello\n")
    terminal.see("got=hello")
    assert terminal.status() == 0


def test_a_stopped_job_can_be_killed(terminal: Terminal, leftovers: Any) -> None:
    terminal.type("netsandbox run -- sh -c 'echo rea\"\"dy; exec sleep 100'\n")
    terminal.see("ready")
    terminal.type(CTRL_Z)
    terminal.see("Stopped")
    watch = leftovers.watch(terminal.shell)
    terminal.type("kill -9 %1; sleep 0.2\n")
    terminal.see("Killed")
    session = [p for p in watch.family if p.pid != terminal.shell.pid]
    assert not what_stays(lambda: [p.command for p in session if p.alive])


def test_a_session_in_the_background_runs(terminal: Terminal) -> None:
    terminal.type("netsandbox run -- sh -c 'sleep 0.1; exit 4' &\n")
    terminal.type("wait $!\n")
    assert terminal.status() == 4


def test_an_interactive_shell_has_job_control(terminal: Terminal) -> None:
    terminal.inner_shell()
    terminal.type("sleep 100 &\n")
    terminal.type("jobs\n")
    terminal.see("Running")
    terminal.type("fg\n")
    terminal.see("sleep 100\r\n")
    terminal.see_running("sleep")
    terminal.type(CTRL_Z)
    terminal.see("Stopped")
    terminal.type("bg; jobs\n")
    terminal.see("Running")
    terminal.type("kill %1; wait %1\n")
    assert terminal.status() == 143
    terminal.type("exit 3\n")
    terminal.see("outer> ")
    assert terminal.status() == 3


def test_ctrl_c_in_an_interactive_shell_ends_only_its_foreground_job(terminal: Terminal) -> None:
    terminal.inner_shell()
    terminal.type("sleep 100\n")
    terminal.see("sleep 100\r\n")
    terminal.see_running("sleep")
    terminal.type(CTRL_C)
    terminal.see("inner> ")
    assert terminal.status() == 130
    terminal.type(CTRL_D)
    terminal.see("outer> ")
    assert terminal.status() == 0


def test_the_terminal_goes_back_to_who_had_it(terminal: Terminal) -> None:
    """A shell in the session takes the terminal for its own group; a script that goes on after it must have it back."""
    script = f'netsandbox run -- {INNER_SHELL}; read line; echo "got""=$line"'
    terminal.type(f"{INNER_PROMPT} sh -c {shlex.quote(script)}\n")
    terminal.see("inner> ")
    terminal.type("exit\n")
    terminal.type("hello\n")
    terminal.see("got=hello")


def test_the_size_of_the_window_reaches_the_program(terminal: Terminal) -> None:
    terminal.resize(24, 80)
    script = 'trap "stty size" WINCH; stty size; while :; do sleep 0.05; done'
    terminal.type(f"netsandbox run -- bash -c {shlex.quote(script)}\n")
    terminal.see("24 80")
    terminal.resize(33, 101)
    terminal.see("33 101")


def test_a_full_screen_program_owns_the_terminal(terminal: Terminal) -> None:
    """Raw mode, set and put back by the program itself."""
    script = (
        "test -t 0 && test -t 1 && stty raw -echo && echo rea''dy && dd bs=1 count=3 status=none | od -An -c; stty sane"
    )
    terminal.type(f'netsandbox run -- sh -c {shlex.quote(script)}; echo do""ne\n')
    terminal.see("ready")
    terminal.type("\x03\x1ax")
    assert "003 032   x" in terminal.see("done")


@pytest.mark.backend("namespaces", "broker")
def test_everything_ends_when_the_terminal_is_closed(netsandbox: Any, leftovers: Any) -> None:
    """INV-10: the window is closed, the session's leader gets SIGHUP."""
    running = netsandbox.spawn("run", "--", "sh", "-c", 'echo rea""dy; sleep 100', terminal=True)
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    os.close(running.terminal)
    running.terminal = None
    running.wait(20)
    watch.assert_gone()


@pytest.mark.parametrize("end", ["kill -9 $$", "exit 3", "exec sleep 100"])
def test_the_terminals_flags_are_restored(netsandbox: Any, end: str) -> None:
    """A command turns echo and lines off and is killed; a shell after it would show nothing of what is typed."""
    master, slave = pty.openpty()
    home = netsandbox.home()
    os.fchown(slave, home.identity.uid, home.identity.gid)
    before = termios.tcgetattr(slave)
    command = ["setsid", "--ctty", *home.identity.command, "run", "--", "sh", "-c", f"stty raw -echo; echo on; {end}"]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=home.work, env=home.environment({}), **home.identity.popen
    )
    running = Spawned(process, home, home.logs(), master)
    running.read_until(b"on")
    if "sleep" in end:
        assert termios.tcgetattr(slave) != before  # while it runs they are the command's
        process.terminate()
    running.wait()
    assert termios.tcgetattr(slave) == before
    os.close(slave)
    running.close()


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_shell_without_a_command_ends_with_its_status_and_gives_the_terminal_back(
    terminal: Terminal, shell: str
) -> None:
    """dash would give the terminal to the group that it found, which does not exist inside."""
    terminal.type(f"SHELL={shell} netsandbox run\n")
    terminal.type("echo rea''dy\n")
    terminal.see("ready")
    terminal.type("exit 3\n")
    assert "process group" not in terminal.see("outer> ")
    assert terminal.status() == 3
