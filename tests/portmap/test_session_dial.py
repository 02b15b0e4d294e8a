"""A port of another session: one spelling of a request, a socket in the reply, and never a wait."""

from __future__ import annotations

import _socket
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netsandbox_portmap import session_dial
from netsandbox_portmap.session_dial import (
    ANOTHER_NAME,
    HIDDEN,
    LATE,
    NOBODY,
    NOT_LISTENING,
    NOT_PUBLISHED,
    REACHED,
    UNHEARD,
    PortRequest,
    SessionDial,
    read_request,
)

from netsandbox.paths import new_session_id, session_dir
from netsandbox.runtime.control_socket import CONTROL_NAME
from netsandbox.runtime.loop import Loop
from netsandbox.session.control import Control
from tests.rig.waiting import turn_until

CALLER = "20261117T123218272-6e240c682ebadc49"
names = st.sampled_from(["db", "shop-2", "a1b"])


@given(names, st.integers(1, 65535))
def test_a_request_is_read_as_it_was_written(name: str, port: int) -> None:
    request = PortRequest(name, port, CALLER)
    assert read_request(request.line()) == request


@given(names, st.integers(1, 65535), st.data())
def test_any_other_spelling_is_no_request(name: str, port: int, data: st.DataObject) -> None:
    """A byte that is dropped, doubled or exchanged is another request, or none; what is read is written the same."""
    line = PortRequest(name, port, CALLER).line()
    at = data.draw(st.integers(0, len(line) - 1))
    put = data.draw(st.binary(max_size=2))
    changed = line[:at] + put + line[at + 1 :]
    found = read_request(changed)
    assert found is None or found.line() == changed


@pytest.mark.parametrize("port", [b"0", b"65536", b"05432", b"-1", b'"5432"', b"1e3", b""])
def test_a_bad_port_is_no_request(port: bytes) -> None:
    line = PortRequest("db", 5432, CALLER).line()
    assert read_request(line.replace(b"5432", port, 1)) is None


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b'{"op":"connect"}', PortRequest("DB", 1, CALLER).line(), PortRequest("db", 1, "a/..").line()],
)
def test_what_is_no_name_or_id_is_no_request(line: bytes) -> None:
    assert read_request(line) is None


class Scene:
    """Sessions on the test's own loop, each of which answers requests for its name."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.loop = Loop(self.errors.append)
        self.results: list[tuple[_socket.socket | None, str]] = []
        self.requests: list[PortRequest] = []
        self._controls: list[Control] = []
        self._ends: list[socket.socket] = []

    def session(self, name: str, reply: bytes = REACHED, *, answers: bool = True) -> tuple[str, Control]:
        session = new_session_id()
        control = Control(self.loop, f"{session_dir(session)}/{CONTROL_NAME}", dict, lambda: None)

        def offer(request: PortRequest, give: Callable[[_socket.socket | None, bytes], None]) -> None:
            self.requests.append(request)
            if answers:
                mine = request.name == name
                give(self._connected() if mine and reply == REACHED else None, reply if mine else ANOTHER_NAME)

        control.offer = offer
        self._controls.append(control)
        return session, control

    def _connected(self) -> _socket.socket:
        given, kept = socket.socketpair()
        self._ends.append(kept)
        return _socket.socket(fileno=given.detach())

    def dial(self, known: str | None = None) -> SessionDial:
        dial = SessionDial(
            self.loop, PortRequest("db", 5432, CALLER), known, lambda *result: self.results.append(result)
        )
        dial.start()
        return dial

    def result(self) -> tuple[_socket.socket | None, str]:
        turn_until(self.loop, lambda: self.results)
        return self.results.pop()

    def close(self) -> None:
        for thing in (*self._controls, *self._ends):
            thing.close()
        self.loop.close()
        assert self.errors == []


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = Scene()
    yield made
    made.close()


def test_the_session_of_that_name_hands_out_a_socket(scene: Scene) -> None:
    scene.session("shop")
    session, _ = scene.session("db")
    dial = scene.dial()
    sock, why = scene.result()
    assert sock is not None
    assert why == ""
    assert sock.send(b"x") == 1
    assert scene._ends[0].recv(9) == b"x"
    assert dial.known == session
    sock.close()


def test_a_known_session_is_asked_alone_and_all_others_once_it_has_ended(scene: Scene) -> None:
    scene.session("shop")
    first, control = scene.session("db")
    scene.dial(first)
    sock, _ = scene.result()
    assert sock is not None
    sock.close()
    assert len(scene.requests) == 1
    control.close()
    second, _ = scene.session("db")
    dial = scene.dial(first)
    sock, _ = scene.result()
    assert sock is not None
    sock.close()
    assert dial.known == second


@pytest.mark.parametrize(("reply", "why"), [(NOT_PUBLISHED, HIDDEN), (NOT_LISTENING, UNHEARD)])
def test_the_reason_of_a_refusal_is_told(scene: Scene, reply: bytes, why: str) -> None:
    scene.session("db", reply)
    scene.dial()
    assert scene.result() == (None, why)


def test_nobody_of_that_name_is_told_at_once(scene: Scene) -> None:
    scene.session("shop")
    scene.dial()
    assert scene.result() == (None, NOBODY)
    scene.dial(new_session_id())
    assert scene.result() == (None, NOBODY)


def test_a_session_that_does_not_answer_ends_at_the_deadline(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_dial, "DEADLINE", 0.05)
    scene.session("db", answers=False)
    scene.dial()
    assert scene.result() == (None, LATE)


def test_a_closed_dial_reports_nothing(scene: Scene) -> None:
    scene.session("db")
    scene.dial().close()
    turn_until(scene.loop, lambda: scene.requests or True)
    assert scene.results == []
