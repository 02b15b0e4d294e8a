"""The broker's questions: each is answered, without a decision by a refusal (INV-1), and its end is noticed."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.folding import FoldedRecords
from netsandbox.backends.broker.arrivals import MAPPED
from netsandbox.backends.broker.questions import QUESTION, VERDICT, Questions
from netsandbox.backends.linux.trap_relay import SocketQuestion
from tests.rig.fake_log import FakeLog
from tests.rig.native_units import Layout

LOCALHOST = MAPPED + bytes([127, 0, 0, 1])
FIELDS = ("id", "device", "inode", "place", "actual", "pid", "error", "protocol", "kind", "family", "type", "binds")


def test_the_bytes_are_those_of_the_c_headers(layout: Layout) -> None:
    found = layout(("questions.h",), "question", *FIELDS)
    assert found.pop("size") == QUESTION.size
    assert [found[name] for name in FIELDS] == [0, 8, 16, 24, 44, 64, 68, 72, 76, 77, 78, 79]
    values = (1, 2, 3, b"\4" * 16, 5, b"\6" * 16, 7, 8, 9, 10, 11, 12, 13, 14)
    packed = QUESTION.pack(*values)
    assert [packed[at] for at in (0, 8, 16, 24, 40, 44, 60, 64, 68, 72, 76, 77, 78, 79)] == [
        *range(1, 4),
        4,
        *range(5, 15),
    ]
    verdict = layout(("questions.h",), "verdict", "id", "error", "actual")
    assert verdict == {"id": 0, "error": 8, "actual": 12, "size": VERDICT.size}


def question(
    kind: str, *, id: int = 7, port: int = 3000, path: bytes = b"", family: int = 2, of_type: int = 1
) -> bytes:
    fixed = QUESTION.pack(id, 5, 6, LOCALHOST, port, LOCALHOST, port, 42, 13, 58, ord(kind), family, of_type, 1)
    return fixed + b"/bin/server\0" + path + b"\0"


class Localhost:
    """Gives each port a place; port 1 is refused, port 2 fails."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def place(self, pid: int, exe: str, address: str, port: int, protocol: str) -> tuple[int, str, int]:
        self.heard.append((pid, exe, address, port, protocol))
        if port == 2:
            raise RuntimeError("a fault")
        return (errno.EACCES if port == 1 else 0), "127.1.2.3", port + 1

    def listening(self, address: str, port: int, pid: int, exe: str) -> None:
        if port == 2:
            raise RuntimeError("a fault")
        self.heard.append((address, port, pid, exe))


class Scene:
    def __init__(self) -> None:
        ours, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours = ours
        self.far.settimeout(20)
        self.log, self.localhost, self.lost = FakeLog(), Localhost(), 0
        self.sockets: list[SocketQuestion] = []
        self.repeats = FoldedRecords(self.log)  # type: ignore[arg-type]
        self.questions = Questions(ours, self.repeats, lambda: self.localhost, self._unix, self._on_lost)  # type: ignore[arg-type]

    def _unix(self, asked: SocketQuestion) -> int:
        self.sockets.append(asked)
        if asked.path == "/fault":
            raise RuntimeError("a fault")
        return errno.EACCES if asked.path == "/denied" else 0

    def _on_lost(self) -> None:
        self.lost += 1

    def ask(self, data: bytes, letter: bytes = b"Q") -> tuple[Any, ...]:
        self.far.send(letter + data)
        self.questions.serve(1)
        return VERDICT.unpack(self.far.recv(100))

    def reasons(self) -> list[tuple[str, str]]:
        return [(record["verdict"], record["reason"]) for record in self.log.records]


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    with made.ours, made.far:
        yield made


def test_a_bind_is_told_where_it_is(scene: Scene) -> None:
    assert scene.ask(question("b")) == (7, 0, MAPPED + bytes([127, 1, 2, 3]), 3001)
    assert scene.localhost.heard == [(42, "/bin/server", "127.0.0.1", 3000, "tcp")]
    assert scene.ask(question("b", port=1))[1] == errno.EACCES


def test_a_socket_file_is_decided_by_its_inode(scene: Scene) -> None:
    assert scene.ask(question("u", path=b"/allowed", id=2**64 - 1))[:2] == (2**64 - 1, 0)
    (asked,) = scene.sockets
    assert (asked.device, asked.inode, asked.pid, asked.kind, asked.binds) == (5, 6, 42, "u", True)
    assert (asked.exe, asked.path) == ("/bin/server", "/allowed")
    assert scene.ask(question("u", path=b"/denied"))[1] == errno.EACCES


@pytest.mark.parametrize(
    ("family", "number", "reason"), [(1, errno.ESOCKTNOSUPPORT, "unix-socket"), (17, errno.EPERM, "socket-family")]
)
def test_a_family_outside_of_the_list_is_refused_and_recorded(
    scene: Scene, family: int, number: int, reason: str
) -> None:
    assert scene.ask(question("f", family=family, of_type=2))[1] == number
    scene.repeats.flush()
    assert scene.reasons() == [("deny", reason)]


@pytest.mark.parametrize(
    "data",
    [question("u", path=b"/fault"), question("b", port=2), question("b")[: QUESTION.size - 1], b"", b"\7" * 9],
    ids=["a-fault", "no-place", "cut", "empty", "short"],
)
def test_without_a_decision_the_answer_is_a_refusal(scene: Scene, data: bytes) -> None:
    answer = scene.ask(data)
    assert answer == (int.from_bytes(data[:8], "little"), errno.EACCES, bytes(16), 0)
    scene.repeats.flush()
    assert scene.reasons() == [("deny", "internal")]


def test_a_refusal_needs_no_log(scene: Scene) -> None:
    scene.log.failed = "disk full"
    scene.repeats.note = lambda *_, **__: 1 / 0  # type: ignore[assignment]
    assert scene.ask(question("u", path=b"/fault"))[1] == errno.EACCES


@given(data=st.binary(max_size=QUESTION.size + 40))
def test_any_bytes_are_answered_and_none_is_let_through(data: bytes) -> None:
    scene = Scene()
    with scene.ours, scene.far:
        answer = scene.ask(data)
        known = len(data) >= QUESTION.size and chr(data[76]) != "f"
        assert answer[0] == int.from_bytes(data[:8], "little")
        assert answer[1] != 0 or known


def test_a_socket_that_listens_is_told_and_waits_for_nothing(scene: Scene) -> None:
    scene.far.send(b"L" + question("l"))
    scene.far.send(b"L" + question("l", port=2))  # it is not published, and that is recorded
    scene.far.send(b"L" + question("l"))
    scene.questions.serve(1)
    assert scene.localhost.heard == [("127.0.0.1", 3000, 42, "/bin/server")] * 2
    scene.far.setblocking(False)
    with pytest.raises(BlockingIOError):
        scene.far.recv(1)
    scene.repeats.flush()
    assert scene.reasons() == [("deny", "internal")]


def test_local_calls_and_unknown_letters(scene: Scene) -> None:
    heard: list[bytes] = []
    scene.far.send(b"Cone")
    scene.questions.serve(1)
    scene.questions.local_call = heard.append
    scene.far.send(b"Ctwo")
    scene.far.send(b"?three")
    scene.questions.serve(1)
    assert heard == [b"two"]


def test_the_end_of_the_broker_is_told_once(scene: Scene) -> None:
    scene.far.send(b"Q" + question("b"))
    scene.far.close()
    scene.questions.serve(1)
    assert scene.lost == 1


def test_a_relay_that_fails_is_the_end_too(scene: Scene) -> None:
    scene.ours.close()
    scene.questions.serve(1)
    assert scene.lost == 1
