"""The relay of `netsandbox exec`: bytes in both directions, and what arrives after the command's end."""

from __future__ import annotations

import os
import pty
import socket
import sys
import threading
from typing import Any

import pytest

from netsandbox.cli import exec_relay
from netsandbox.cli.exec_relay import Relay, Standard
from netsandbox.session.exec_client import SecondCommand, SessionEndedError


class Session:
    """The session's end of a second command."""

    def __init__(self) -> None:
        self.far, near = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.command = SecondCommand.__new__(SecondCommand)
        self.command.socket = near  # type: ignore[assignment]

    def tell(self, kind: bytes, number: int) -> None:
        self.far.send(kind + number.to_bytes(4, sys.byteorder))

    def close(self) -> None:
        self.far.close()
        self.command.socket.close()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(exec_relay._signal, "signal", lambda number, handler: None)
    made = Session()
    yield made
    made.close()


def plain(monkeypatch: pytest.MonkeyPatch, terminals: tuple[bool, bool, bool]) -> Standard:
    monkeypatch.setattr(os, "isatty", lambda number: terminals[number])
    return Standard()


@pytest.mark.attack(235)
@pytest.mark.parametrize(
    ("terminals", "bits", "same", "piped"),
    [
        ((False, False, False), 0, [0, 1, 2], []),
        ((True, True, True), 7, [], []),
        ((True, True, False), 3, [2], []),
        ((False, True, True), 0, [0], [1, 2]),
        ((True, False, False), 0, [1, 2], []),
        ((True, False, True), 0, [1], [2]),
    ],
)
def test_a_terminal_of_the_user_is_never_among_the_descriptors(
    monkeypatch: pytest.MonkeyPatch, terminals: tuple[bool, bool, bool], bits: int, same: list[int], piped: list[int]
) -> None:
    found = plain(monkeypatch, terminals)
    assert found.terminal == bits
    assert [number for number in found.passed if number < 3] == same
    assert list(found.sources.values()) == piped
    found.close()
    for source in found.sources:
        os.close(source)


def test_what_was_written_before_the_end_arrives_though_others_keep_the_pipe(
    session: Session, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    standard = plain(monkeypatch, (False, True, False))
    end = os.dup(standard.passed[1])  # a process in the background has it too
    session.tell(b"P", 5)
    os.write(end, b"last words")
    session.tell(b"S", 3 << 8)
    assert Relay(session.command, standard).run() == (0, 3 << 8)
    assert capfd.readouterr().out == "last words"
    os.close(end)
    for source in standard.sources:
        os.close(source)


def test_a_command_that_cannot_be_executed_has_its_errno(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    standard = plain(monkeypatch, (False, False, False))
    for kind, number in ((b"P", 5), (b"X", 2), (b"S", 127 << 8)):
        session.tell(kind, number)
    assert Relay(session.command, standard).run() == (2, 127 << 8)


def test_the_end_of_the_session_is_no_status(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    standard = plain(monkeypatch, (False, False, False))
    session.tell(b"P", 5)
    session.far.close()
    with pytest.raises(SessionEndedError):
        Relay(session.command, standard).run()


def test_a_terminal_that_is_full_keeps_what_is_typed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads nothing must not stop its own output: what is typed waits here."""
    relay = Relay(session.command, plain(monkeypatch, (False, False, False)))
    relay._standard.close()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    relay._master, relay._typed = writing, bytes(1 << 20)
    relay._give_typed()
    left = len(relay._typed)
    assert 0 < left < 1 << 20
    relay._give_typed()
    assert len(relay._typed) == left
    os.close(reading)
    relay._give_typed()
    assert relay._typed == b""
    os.close(writing)


def test_a_terminal_is_raw_for_the_time_and_restored(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    (outer, tty), (master, slave) = pty.openpty(), pty.openpty()
    saved = os.dup(0)
    os.dup2(tty, 0)
    try:
        before = exec_relay.termios.tcgetattr(tty)
        socket.send_fds(session.far, [b"P" + bytes(4)], [master])
        os.close(master)
        relay = Relay(session.command, plain(monkeypatch, (True, True, True)))
        written: list[bytes] = []
        monkeypatch.setattr(relay, "_pass", lambda source: written.append(os.read(source, 100)) or 1)
        done = threading.Thread(target=relay.run)
        done.start()
        os.write(outer, b"\x03typed\n")
        assert os.read(slave, 100) == b"typed\n"  # Ctrl-C was a signal of the inner terminal, and dropped what waited
        session.tell(b"S", 0)
        done.join(20)
        assert not done.is_alive()
        assert exec_relay.termios.tcgetattr(tty) == before
    finally:
        os.dup2(saved, 0)
        for fd in (saved, outer, tty, slave):
            os.close(fd)
