"""`--watch` redraws on a terminal, prints news elsewhere, and ends well."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.live import LiveSession, sessions

CODE = "from netsandbox.cli.main import main; main()"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def start(*words: str, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ),  # and not what readline has put into the process's own
    )


def read_until(fd: int, enough: Callable[[bytes], bool], seconds: float = 30) -> bytes:
    data, until = b"", time.monotonic() + seconds
    while not enough(data):
        ready, _, _ = select.select([fd], [], [], max(0.0, until - time.monotonic()))
        assert ready, data
        data += os.read(fd, 65536)
    return data


def interrupt(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    with process.stderr:
        error = process.stderr.read()
    return process.wait(30), error


def test_a_program_gets_a_line_for_every_change() -> None:
    with sessions({"name": "one"}) as (one,):
        process = start("ports", "--watch", "--json", stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout:
            first = json.loads(process.stdout.readline())
            other = LiveSession(name="two")
            try:
                second = json.loads(process.stdout.readline())
            finally:
                other.end()
            third = json.loads(process.stdout.readline())
            assert interrupt(process) == (0, b"")
            assert process.stdout.read() == b""
    assert [[entry["name"] for entry in entries] for entries in (first, third)] == [["one"], ["one"]]
    assert sorted(entry["name"] for entry in second) == ["one", "two"]
    assert first[0]["session"] == one.id


def test_a_reader_who_leaves_ends_it() -> None:
    with sessions({}):
        process = start("ps", "--watch", stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        with process.stderr:
            assert process.stderr.read() == b""
        assert process.wait(20) == 0


def test_a_terminal_is_drawn_over_within_its_size_and_ctrl_c_is_a_good_end() -> None:
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 4, 60, 0, 0))
    with sessions(*[{"name": f"shop-{number}"} for number in range(6)]):
        process = start("ps", "--watch", stdout=side)
        os.close(side)
        shown = read_until(main, lambda data: data.count(b"\x1b[H") >= 2 and data.endswith(b"\x1b[J"))
        assert interrupt(process) == (0, b"")
    os.close(main)
    assert shown.startswith(b"\x1b[2J\x1b[H")
    picture = shown.split(b"\x1b[H")[1]
    lines = picture.replace(b"\x1b[J", b"").replace(b"\x1b[K", b"").decode().splitlines()
    assert len(lines) == 3
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].startswith("NAME")
    assert lines[-1] == "... and 5 more"
    assert b"\x1b[?" not in shown  # no mode of the terminal is changed, so none is left changed
