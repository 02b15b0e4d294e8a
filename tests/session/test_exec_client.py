"""The client of a session that starts a command: what it sends, and how it ends when the session does."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netsandbox.errors import CommandError, HostError, NetsandboxError
from netsandbox.paths import new_session_id
from netsandbox.session import exec_client
from netsandbox.session.control import DONE, EXEC, SETTLE
from netsandbox.session.exec_client import SecondCommand, SessionEndedError
from netsandbox.session.exec_requests import MAX_REQUEST
from tests.rig.live import LiveSession


class Spawning(LiveSession):
    """Keeps the socket that comes with a request for a second command, or replies with what `refuses`."""

    refuses: dict[str, object] | None = None
    far: socket.socket

    def take(self, passed: list[int], pid: int, uid: int) -> bytes:
        self.far = socket.socket(fileno=passed.pop())
        return DONE if self.refuses is None else json.dumps(self.refuses).encode() + b"\n"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spawning]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    live = Spawning()
    live.control.handlers = {EXEC: live.take}
    yield live
    live.end()


@pytest.fixture
def null() -> Iterator[int]:
    fd = os.open(os.devnull, os.O_RDWR)
    yield fd
    os.close(fd)


def message(kind: bytes, number: int) -> bytes:
    return kind + number.to_bytes(4, sys.byteorder)


def started(session: Spawning, null: int, folder: str = "") -> SecondCommand:
    command = SecondCommand(session.id, b"request", [null] * 3, folder)
    assert session.far.recv(100) == b"request"
    return command


def test_a_request_goes_over_with_its_descriptors_and_signals_follow(session: Spawning, null: int) -> None:
    command = SecondCommand(session.id, b"request", [null] * 3)
    data, passed, _, _ = socket.recv_fds(session.far, 100, 8)
    assert (data, len(passed)) == (b"request", 3)
    command.signal(15)
    assert session.far.recv(100) == b"\x0f"
    for fd in passed:
        os.close(fd)
    session.far.close()
    command.signal(15)
    command.socket.close()


def test_the_terminals_master_comes_with_the_start_and_the_status_at_the_end(session: Spawning, null: int) -> None:
    command = started(session, null)
    socket.send_fds(session.far, [message(b"P", 5)], [null])
    master = command.wait_started()
    assert master is not None
    os.close(master)
    session.far.send(message(b"S", 256))
    assert (command.receive().kind, session.far.close()) == ("S", None)
    assert command.receive().kind == ""
    command.socket.close()


def test_a_session_settles_and_one_that_cannot_is_no_error(session: Spawning) -> None:
    exec_client.settle(session.id)  # of a version that does not know the request
    heard: list[list[int]] = []

    def take(passed: list[int], pid: int, uid: int) -> bytes:
        heard.append(passed)
        return DONE

    session.control.handlers[SETTLE] = take
    exec_client.settle(session.id)
    assert heard == [[]]
    exec_client.settle(new_session_id())


def test_a_session_that_ends_before_the_start_is_told_apart(session: Spawning, null: int) -> None:
    command = started(session, null)
    session.far.close()
    with pytest.raises(SessionEndedError):
        command.wait_started()
    command.socket.close()
    with pytest.raises(SessionEndedError):
        SecondCommand(new_session_id(), b"request", [null] * 3)


@pytest.mark.parametrize(
    ("kind", "number", "status", "text"),
    [(b"C", 2, 126, "--cwd /nope: No such file or directory; "), (b"E", 11, 1, "cannot start one more command")],
)
def test_why_it_was_not_started_is_said(
    session: Spawning, null: int, kind: bytes, number: int, status: int, text: str
) -> None:
    command = started(session, null, "/nope")
    session.far.send(message(kind, number))
    with pytest.raises(NetsandboxError, match=text) as caught:
        command.wait_started()
    assert caught.value.status == status
    command.socket.close()
    session.far.close()


@pytest.mark.parametrize(
    ("reply", "status", "text"),
    [
        ({"error": "the log is full; free space", "status": 1}, 1, "the log is full; free space"),
        ({"error": "unknown request"}, 1, "another version"),
        ({"error": "odd", "status": "0"}, 1, "odd"),
        ({}, 1, "cannot be read"),
    ],
)
def test_a_refusal_is_an_error_with_its_status(
    session: Spawning, null: int, reply: dict[str, object], status: int, text: str
) -> None:
    session.refuses = reply
    with pytest.raises(CommandError, match=text) as caught:
        SecondCommand(session.id, b"request", [null] * 3)
    assert caught.value.status == status
    session.far.close()


def test_a_session_that_does_not_answer_is_not_waited_for(
    session: Spawning, null: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = started(session, null)
    monkeypatch.setattr(exec_client, "PATIENCE", 0.01)  # not before: a busy machine may need longer to start it
    with pytest.raises(HostError, match="suspended with Ctrl-Z"):
        command.wait_started()
    command.socket.close()
    session.far.close()


def test_words_that_are_too_long_are_not_sent(null: int) -> None:
    with pytest.raises(NetsandboxError, match="too long"):
        SecondCommand("any", bytes(MAX_REQUEST + 1), [null] * 3)


def test_a_session_of_another_user_is_refused(session: Spawning, null: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def stranger(sock: Any) -> bool:
        return False

    monkeypatch.setattr(exec_client, "is_trusted", stranger)
    with pytest.raises(HostError, match="another user"):
        SecondCommand(session.id, b"request", [null] * 3)
