"""The session's sockets: by netlink where that can be asked, by the tables of /proc where not, and never a guess."""

from __future__ import annotations

import _socket
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netsandbox.backends.namespaces import session_sockets
from netsandbox.backends.namespaces.session_sockets import SessionSockets

SOCK_DIAG = 4


class FakeInner:
    """Keeps the wish until the test answers it."""

    def __init__(self) -> None:
        self.wishes: list[tuple[int, Callable[[_socket.socket | None], None]]] = []

    def take(self, family: int, done: Callable[[_socket.socket | None], None]) -> None:
        self.wishes.append((family, done))


def diag() -> _socket.socket:
    return _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, SOCK_DIAG)


@pytest.fixture
def inner() -> FakeInner:
    return FakeInner()


@pytest.fixture
def sockets(inner: FakeInner) -> Iterator[SessionSockets]:
    """This very network stands for the session's."""
    made = SessionSockets(os.getpid(), inner)  # type: ignore[arg-type]
    yield made
    made.close()


@pytest.fixture(params=["tables", "netlink", "netlink-fails", "netlink-answers-nonsense"])
def asked(request: Any, inner: FakeInner, sockets: SessionSockets, monkeypatch: pytest.MonkeyPatch) -> SessionSockets:
    """Each way to ask, also when it breaks in the middle."""
    if request.param != "tables":
        inner.wishes[0][1](diag())
    errors = {"netlink-fails": OSError("refused"), "netlink-answers-nonsense": ValueError("short")}
    if request.param in errors:

        def fail(*_: object) -> Iterator[tuple[str, int, str]]:
            yield "127.0.0.1", 1, "1"
            raise errors[request.param]

        monkeypatch.setattr(session_sockets, "internet_sockets", fail)
    return sockets


def test_one_socket_is_asked_for_and_it_is_netlink(inner: FakeInner, sockets: SessionSockets) -> None:
    assert [family for family, _ in inner.wishes] == [_socket.AF_NETLINK]


def test_listeners_are_found_and_others_are_not(asked: SessionSockets) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as server6,
        socket.create_connection(server.getsockname()) as client,
        socket.socket() as bound,
    ):
        bound.bind(("127.0.0.1", 0))
        found = asked.listening()
        for sock in (server, server6):
            assert (*sock.getsockname()[:2], str(os.fstat(sock.fileno()).st_ino)) in found
        places = {place[:2] for place in found}
        assert places.isdisjoint({client.getsockname(), bound.getsockname(), ("127.0.0.1", 1)})


@pytest.mark.parametrize("bound", [False, True])
def test_ports_in_use_are_those_of_listeners_and_datagrams(asked: SessionSockets, bound: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as datagram:
        datagram.bind(("127.0.0.1", 0))
        used = asked.ports_in_use(bound=bound)
        assert {server.getsockname()[1], datagram.getsockname()[1]} <= used


def test_the_kernel_is_asked_for_bound_sockets_only_where_they_are_wanted(
    inner: FakeInner, sockets: SessionSockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[tuple[int, int]] = []
    monkeypatch.setattr(session_sockets, "internet_sockets", lambda _, *what: states.append(what) or ())
    inner.wishes[0][1](diag())
    sockets.ports_in_use(bound=False)
    sockets.ports_in_use(bound=True)
    assert states == [(6, 1 << 10), (17, 0xFFFFFFFF), (6, 1 << 10 | 1 << 13), (17, 0xFFFFFFFF)]


def test_what_broke_once_is_not_asked_again(
    inner: FakeInner, sockets: SessionSockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = diag()
    inner.wishes[0][1](made)
    calls = []

    def fail(*_: object) -> Iterator[tuple[str, int, str]]:
        calls.append(1)
        raise OSError("refused")
        yield

    monkeypatch.setattr(session_sockets, "internet_sockets", fail)
    sockets.listening()
    sockets.listening()
    sockets.ports_in_use(bound=True)
    assert len(calls) == 1
    assert made.fileno() == -1


def test_a_session_that_gives_no_socket_is_read_from_its_tables(inner: FakeInner, sockets: SessionSockets) -> None:
    inner.wishes[0][1](None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname() in {found[:2] for found in sockets.listening()}


def test_a_session_that_has_ended_has_none() -> None:
    sockets = SessionSockets(2**31 - 1, FakeInner())  # type: ignore[arg-type]
    assert sockets.listening() == []
    assert sockets.ports_in_use(bound=True) == set()
