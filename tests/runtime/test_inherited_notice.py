"""A line for the user is never waited for."""

from __future__ import annotations

import fcntl
import os
import pty

import pytest

from netsandbox.runtime import inherited


def test_a_line_is_marked_as_ours() -> None:
    reading, writing = os.pipe()
    assert inherited.write_notice(writing, "hello")
    assert os.read(reading, 100) == b"netsandbox: hello\n"
    os.close(reading)
    assert not inherited.write_notice(writing, "nobody reads")
    os.close(writing)


def test_a_pipe_without_room_is_not_waited_for() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))
    assert os.get_blocking(writing)
    assert not inherited.write_notice(writing, "hello")
    os.close(reading)
    os.close(writing)


def test_a_terminal_that_cannot_be_opened_again_still_gets_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    monkeypatch.setattr(inherited, "_reopened", lambda stderr: None)
    assert inherited.write_notice(slave, "hello")
    assert os.read(master, 100) == b"netsandbox: hello\r\n"
    os.close(master)
    os.close(slave)


def test_a_terminal_that_nobody_reads_is_not_waited_for() -> None:
    """A blocked terminal takes some lines, then none."""
    master, slave = pty.openpty()
    assert any(not inherited.write_notice(slave, "x" * 400) for _ in range(10_000))
    os.close(master)
    os.close(slave)


@pytest.mark.attack(272)
def test_what_is_not_printable_is_escaped() -> None:
    """A session chose such names: one set the terminal's title, one ended netsandbox by an error of encoding."""
    reading, writing = os.pipe()
    try:
        assert inherited.write_notice(writing, "a\x1b]0;x\x07\nnetsandbox: b\udcff é")
        assert os.read(reading, 100) == "netsandbox: a\\x1b]0;x\\x07\\nnetsandbox: b\\udcff é\n".encode()
    finally:
        os.close(reading)
        os.close(writing)
