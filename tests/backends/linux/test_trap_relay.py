"""Messages of the native observer: calls are passed on, refusals recorded, and its end ends the session."""

from __future__ import annotations

import _socket
import errno
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.trap_relay import (
    REPLY,
    FileRefusal,
    SocketQuestion,
    TrapRelay,
    read_question,
    read_refusal,
)


def message(path: bytes = b"/h/a/x", exe: bytes = b"/bin/cat", why: bytes = b"h") -> bytes:
    return struct.pack("=ccHiI", why, b"r", 257, 42, 3) + exe + b"\0" + path + b"\0"


class Refusals:
    def __init__(self) -> None:
        self.taken: list[FileRefusal] = []
        self.made_paths: list[str] = []
        self.missing = 0
        self.closed = False

    def take(self, refusal: FileRefusal) -> None:
        if refusal.why == "!":
            raise RuntimeError("cannot be recorded")
        self.taken.append(refusal)

    def made(self, path: str) -> None:
        self.made_paths.append(path)

    def left_out(self, count: int) -> None:
        self.missing += count

    def close(self) -> None:
        self.closed = True


class Scene:
    def __init__(self) -> None:
        self.ours, self.far = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0)
        self.refusals = Refusals()
        self.lost = 0
        self.questions: list[SocketQuestion] = []
        self.relay = TrapRelay(self.ours, self.refusals, self._decide, self._on_lost)

    def _decide(self, question: SocketQuestion) -> int:
        if question.kind == "!":
            raise RuntimeError("no decision")
        self.questions.append(question)
        return 0

    def _on_lost(self) -> None:
        self.lost += 1


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.ours.close()
    made.far.close()


def test_a_refusal_is_read() -> None:
    assert read_refusal(message()) == FileRefusal("h", "r", 257, 42, 3, "/bin/cat", "/h/a/x")
    assert read_refusal(message(path=b"/\xff")).path == "/\udcff"


@given(st.binary(max_size=64))
def test_other_bytes_are_an_error_or_a_path(data: bytes) -> None:
    try:
        read = read_refusal(data)
    except (ValueError, IndexError):
        return
    assert read.path.startswith("/")
    assert "\0" not in read.exe


def test_a_call_is_passed_on_and_a_refusal_is_not(scene: Scene) -> None:
    scene.far.send(b"T" + b"\1" * 80)
    scene.far.send(b"F" + message())
    assert scene.relay.receive() == b"\1" * 80
    assert scene.relay.receive() is None
    assert [each.path for each in scene.refusals.taken] == ["/h/a/x"]
    assert scene.relay.receive() is None  # nothing is there
    assert scene.lost == 0


def test_a_path_that_the_session_makes_is_passed_on(scene: Scene) -> None:
    scene.far.send(b"M/h/\xff\0")
    assert scene.relay.receive() is None
    assert (scene.refusals.made_paths, scene.refusals.missing) == (["/h/\udcff"], 0)


@pytest.mark.parametrize("data", [b"F", b"Fxx", b"F" + message(path=b"relative"), b"F" + message(why=b"!")])
def test_a_report_that_cannot_be_recorded_is_counted(scene: Scene, data: bytes) -> None:
    scene.far.send(data)
    assert scene.relay.receive() is None
    assert (scene.refusals.taken, scene.refusals.missing) == ([], 1)
    scene.far.send(b"U" + struct.pack("=I", 7))
    scene.relay.receive()
    assert scene.refusals.missing == 8


def question(path: bytes = b"/run/x", kind: bytes = b"u") -> bytes:
    return struct.pack("=QQQiicBB5x", 7, 51, 8, 42, 13, kind, 1, 0) + b"/bin/nc\0" + path + b"\0"


def test_a_question_is_read_and_answered(scene: Scene) -> None:
    scene.far.send(b"Q" + question())
    assert scene.relay.receive() is None
    expected = SocketQuestion(7, 51, 8, 42, 13, "u", 1, False, "/bin/nc", "/run/x")
    assert (scene.questions, scene.far.recv(99)) == ([expected], REPLY.pack(7, 0))


@pytest.mark.parametrize("data", [question(kind=b"!"), question()[:-1], question()[:20], question()[:8]])
def test_a_question_without_a_decision_is_answered_with_a_refusal(scene: Scene, data: bytes) -> None:
    """INV-1: the broker waits for the answer."""
    scene.far.send(b"Q" + data)
    assert scene.relay.receive() is None
    assert scene.far.recv(99) == REPLY.pack(7, errno.EACCES)
    assert scene.refusals.missing == 1


def test_an_answer_to_a_process_that_is_gone_is_no_error(scene: Scene) -> None:
    scene.far.send(b"Q" + question())
    scene.far.close()
    assert scene.relay.receive() is None
    scene.relay.receive()
    assert scene.lost == 1


@given(st.binary(max_size=80))
def test_other_bytes_are_no_question(data: bytes) -> None:
    try:
        read = read_question(data)
    except (ValueError, struct.error):
        return
    assert "\0" not in read.exe


def test_the_end_of_the_observer_is_reported(scene: Scene) -> None:
    scene.far.close()
    assert scene.relay.receive() is None
    assert scene.lost == 1


def test_closing_records_what_was_reported_before_the_end(scene: Scene) -> None:
    held = b"A" + b"\1" * 80 + message(path=b"/h/a/z")  # its command has ended
    for data in (b"F" + message(), b"T" + b"\1" * 80, b"F" + message(path=b"/h/a/y"), held, b"M/h/a/x\0"):
        scene.far.send(data)
    scene.far.close()
    scene.relay.close()
    assert [each.path for each in scene.refusals.taken] == ["/h/a/x", "/h/a/y", "/h/a/z"]
    assert scene.refusals.made_paths == ["/h/a/x"]
    assert scene.refusals.closed
    assert scene.lost == 0


def test_refusals_that_nobody_reads_do_not_fill_the_session(scene: Scene) -> None:
    """The observer drops a report that does not fit instead of waiting; here only the bound of one message is held."""
    long: Any = message(path=b"/" + b"x" * 4094, exe=b"/" + b"y" * 4094)
    scene.far.send(b"F" + long)
    scene.relay.receive()
    assert len(scene.refusals.taken[0].path) == 4095
