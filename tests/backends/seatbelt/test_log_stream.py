"""The program that prints the log is alone, is read without waiting, and ends with us in whatever way we end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netsandbox.backends.seatbelt.log_stream import LogStream
from netsandbox.backends.seatbelt.profile.violations import command
from tests.rig.mac_log import BANNER, ROOT, stand_in
from tests.rig.processes import is_gone
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")

PATIENCE = 20
FOREVER = "while True: time.sleep(60)"
Start = Callable[[str], LogStream]


@pytest.fixture(params=filter(shutil.which, ("dash", "bash", "zsh")), autouse=True)
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the name `sh`: on a Mac that is any of the three."""
    found = shutil.which(request.param)
    assert found is not None
    (tmp_path / "shell").mkdir()
    (tmp_path / "shell" / "sh").symlink_to(found)
    monkeypatch.setattr("netsandbox.backends.seatbelt.log_stream.SHELL", str(tmp_path / "shell" / "sh"))
    return str(tmp_path / "shell" / "sh")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[LogStream] = []

    def start(body: str) -> LogStream:
        started.append(LogStream(command("tag", stand_in(tmp_path, body))))
        return started[-1]

    yield start
    for stream in started:
        stream.close()


def read_all(stream: LogStream) -> bytes:
    told = b""
    while True:
        stream.wait(PATIENCE)
        data = stream.read()
        if not data:
            assert data is not None
            return told
        told += data


def pid_in(folder: Path) -> int:
    wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    return int((folder / "pid").read_text())


def test_what_it_prints_is_read_until_it_ends(start: Start) -> None:
    assert read_all(start("say(BANNER, b'x' * 300_000)")) == BANNER + b"x" * 300_000


def test_reading_never_waits(start: Start) -> None:
    stream = start(f"say(BANNER)\n{FOREVER}")
    stream.wait(PATIENCE)
    assert stream.read() == BANNER
    assert stream.read() is None


def test_it_has_no_environment_and_three_descriptors_of_its_own(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    body = """
def leads(n):
    try: return os.readlink(f"/proc/self/fd/{n}")
    except OSError: return os.devnull
say(repr(({leads(n) for n in range(64) if n != 1}, "SECRET" in os.environ)).encode())
"""
    assert read_all(start(body)) == repr(({os.devnull}, False)).encode()


def test_what_is_typed_at_the_terminal_does_not_reach_it(start: Start) -> None:
    told = read_all(start("say(str(os.getpgrp()).encode())"))
    assert int(told) != os.getpgrp()


@pytest.mark.parametrize("ignored", ["", "for n in (1, 2, 13, 15): signal.signal(n, signal.SIG_IGN)\n"])
def test_closing_ends_it_whatever_it_ignores(start: Start, tmp_path: Path, ignored: str) -> None:
    stream = start(f"{ignored}say(BANNER)\n{FOREVER}")
    stream.wait(PATIENCE)
    pid = pid_in(tmp_path)
    assert not is_gone(pid)
    stream.close()
    stream.close()
    wait_for(lambda: is_gone(pid))


def test_closing_leaves_no_child_and_no_descriptor(start: Start) -> None:
    before = set(os.listdir("/proc/self/fd"))
    stream = start(FOREVER)
    stream.close()
    assert set(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(stream._pid, os.WNOHANG)


@pytest.mark.parametrize("words", [["/no/such/program"], ["/etc/passwd"], ["/"]])
def test_a_program_that_cannot_be_run_is_one_that_has_ended(words: list[str]) -> None:
    stream = LogStream(words)
    try:
        assert read_all(stream) == b""
    finally:
        stream.close()


def test_without_a_shell_it_is_an_error_and_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netsandbox.backends.seatbelt.log_stream.SHELL", "/no/such/shell")
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        LogStream(["/bin/true"])
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_we_are_killed_it_ends_too(tmp_path: Path, shell: str, number: signal.Signals) -> None:
    """INV-10: it prints nothing, so that it would never notice by itself."""
    words = command("tag", stand_in(tmp_path, f"signal.signal(15, signal.SIG_IGN)\n{FOREVER}"))
    text = (
        f"import sys, time; sys.path[:0] = [{str(ROOT)!r}]\n"
        f"from netsandbox.backends.seatbelt import log_stream; log_stream.SHELL = {shell!r}\n"
        f"stream = log_stream.LogStream({words!r})\nprint('ready', flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        pid = pid_in(tmp_path)
        assert not is_gone(pid)
        owner.send_signal(number)
        owner.wait(PATIENCE)
    wait_for(lambda: is_gone(pid))
