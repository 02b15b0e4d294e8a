"""Sessions of one user pass connections and listening sockets to one another, and nobody else gets or gives any."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap import handover as module
from netsandbox_portmap.handover import (
    MAX_HELD,
    HandoverDoor,
    ListenersRequest,
    folder,
    hand_over,
    live_names,
    session_names,
)
from netsandbox_portmap.session_name import hold_name

from tests.rig.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.usefixtures("neighbours")


class Door:
    """A session that takes connections, and has two listening sockets at port 7."""

    def __init__(self, rig: Any, name: str) -> None:
        self.got: list[tuple[socket.socket, bytes]] = []
        self.shared = [socket.create_server(("127.0.0.1", 0)), socket.create_server(("::1", 0), family=socket.AF_INET6)]
        self.door = rig.run(lambda: HandoverDoor(rig.loop, name, self._listeners, self._receive))
        rig.keep(self)

    def _listeners(self, port: int) -> Any:
        return self.shared if port == 7 else []

    def _receive(self, sock: Any, data: bytes) -> None:
        self.got.append((socket.socket(fileno=sock.detach()), data))

    def close(self) -> None:
        self.door.close()
        for sock in (*self.shared, *(sock for sock, _ in self.got)):
            sock.close()


@pytest.fixture
def shop(rig: Any) -> Door:
    return Door(rig, "shop")


def ask(rig: Any, port: int) -> list[Any]:
    answers: list[list[Any]] = []
    rig.run(lambda: ListenersRequest(rig.loop, port, "own", answers.append))
    wait_for(lambda: answers)
    return answers[0]


def plain(name: str = "shop") -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE)
    sock.connect(f"{folder()}/{name}")
    return sock


@pytest.mark.parametrize("size", [0, 5, MAX_HELD])
def test_a_connection_arrives_with_the_bytes_that_were_read(rig: Any, shop: Door, size: int) -> None:
    ours, theirs = socket.socketpair()
    data = os.urandom(size)
    threading.Thread(target=hand_over, args=("shop", ours, data)).start()
    wait_for(lambda: shop.got)
    ours.close()
    sock, came = shop.got[0]
    assert came == data
    sock.sendall(b"hello")
    assert theirs.recv(5) == b"hello"
    theirs.close()


@pytest.mark.attack(190)
@pytest.mark.parametrize("name", ["", "red", "../shop", "shop/", "./shop", "shop.new", "SHOP"])
def test_a_name_that_is_no_session_leads_nowhere(shop: Door, name: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(FileNotFoundError):
        hand_over(name, ours, b"")


def test_the_folder_and_the_socket_are_the_users_own(shop: Door) -> None:
    assert os.stat(folder()).st_mode & 0o777 == 0o700
    assert os.stat(f"{folder()}/shop").st_mode & 0o777 == 0o600


def test_listening_sockets_are_copied(rig: Any, shop: Door) -> None:
    Door(rig, "red")
    got = ask(rig, 7)
    assert {sock.family for sock in got} == {socket.AF_INET, socket.AF_INET6}
    places = [sock.getsockname() for sock in got]
    for sock in got:
        sock.close()
    for place in places:
        with socket.create_connection(place[:2], PATIENCE):  # the session's own copies still listen
            pass


def test_nobody_has_them(rig: Any) -> None:
    assert ask(rig, 7) == []
    Door(rig, "shop")
    assert ask(rig, 8) == []


def test_a_session_that_hangs_is_not_waited_for(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    os.makedirs(folder(), 0o700)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{folder()}/silent")
        silent.listen()
        assert ask(rig, 7) == []


def test_a_session_that_was_killed_is_forgotten_unless_its_name_lives(rig: Any, shop: Door) -> None:
    for name in ("dead", "born"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(f"{folder()}/{name}")
    held = hold_name("born", explicit=True)  # a new session that does not listen yet
    assert live_names() == ["shop"]
    assert session_names() == ["born", "shop"]
    held.close()
    assert ask(rig, 8) == []
    assert session_names() == ["shop"]


def test_no_folder_means_no_sessions() -> None:
    assert not Path(folder()).exists()
    assert session_names() == live_names() == []


@pytest.mark.attack(185)
@pytest.mark.parametrize(
    "request_",
    [
        b"\n",
        b"unknown 7\n",
        b"listeners\n",
        b"listeners -1\n",
        b"listeners 7777777\n",
        b"connection x\nabc",
        b"connection 3\nabc",  # without a connection
        b"connection 9\nabc",  # cut short
        b"x" * 40,
        b"connection 999999\n" + b"x" * (MAX_HELD + 1),
    ],
)
def test_what_is_no_request_is_closed(rig: Any, shop: Door, request_: bytes) -> None:
    with plain() as client, contextlib.suppress(ConnectionError):
        client.sendall(request_)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(99) == b""
    assert shop.got == []
    assert len(ask_and_close(rig)) == 2  # the door is still there


def ask_and_close(rig: Any) -> list[Any]:
    got = ask(rig, 7)
    for sock in got:
        sock.close()
    return got


@pytest.mark.attack(192)
def test_a_client_that_dawdles_is_closed(rig: Any, shop: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE", 0.1)
    with plain() as client:
        client.send(b"listen")
        assert client.recv(1) == b""


def test_past_the_limit_clients_wait(rig: Any, shop: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLIENTS", 2)
    waiting = [plain() for _ in range(2)]
    third = plain()
    third.send(b"listeners 8\n")
    waiting[0].close()
    assert third.recv(9) == b"0"
    waiting[1].close()
    third.close()


@pytest.mark.attack(182)
def test_another_user_gets_and_gives_nothing(rig: Any, shop: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with monkeypatch.context() as patch, ours, theirs:
        patch.setattr(module, "is_trusted", lambda sock: False)
        with pytest.raises(PermissionError):
            hand_over("shop", ours, b"")
        with plain() as client:
            assert client.recv(1) == b""
        assert ask(rig, 7) == []
    assert shop.got == []


def test_a_descriptor_that_is_no_socket_is_closed(shop: Door) -> None:
    with plain() as client, open(os.devnull, "rb") as file:
        socket.send_fds(client, [b"connection 0\n"], [file.fileno()])
        assert client.recv(1) == b""
    assert shop.got == []


def test_closing_removes_the_name(rig: Any, shop: Door) -> None:
    with plain() as client:
        client.send(b"listen")
        wait_for(lambda: rig.run(lambda: len(shop.door._clients)) == 1)
        rig.run(shop.door.close)
        with contextlib.suppress(ConnectionResetError):  # if our bytes had not been read
            assert client.recv(1) == b""
    assert session_names() == []


def test_a_name_that_a_killed_session_left_half_made_is_taken_over(rig: Any, shop: Door) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"{folder()}/red.new")
    Door(rig, "red")
    assert session_names() == ["red", "shop"]
