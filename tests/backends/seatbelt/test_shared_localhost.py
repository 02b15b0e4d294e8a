"""Ports of the window, given to the library that asks: by a real door, with the map's token."""

from __future__ import annotations

import errno
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap.bind_requests import MAGIC, REPLY, REQUEST, REQUEST_BIND, TCP
from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.backends.seatbelt.localhost_settings import mac_settings
from netsandbox.backends.seatbelt.reservation import SeatbeltReservation
from netsandbox.backends.seatbelt.shared_localhost import SharedLocalhost
from netsandbox.paths import new_session_id
from netsandbox.runtime.loop import IN, Loop
from tests.rig import ports
from tests.rig.fake_log import FakeLog

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"
)

PATIENCE = 20.0


class Asked:
    """A localhost in a thread, and somebody who asks it as the library does."""

    def __init__(self, held: SeatbeltReservation, stderr: Path) -> None:
        self.held = held
        self.log = FakeLog()
        self.loop = Loop()
        self.stderr = stderr.open("w+")
        self.localhost = SharedLocalhost(self.loop, self.log, held, stderr=self.stderr.fileno())  # type: ignore[arg-type]

    def ask(self, port: int, address: str = "127.0.0.1", token: bytes | None = None) -> tuple[int, int]:
        assert self.held.requests is not None
        assert self.held.map is not None
        request = REQUEST.pack(
            MAGIC, REQUEST_BIND, port, socket.inet_aton(address), TCP, self.held.map.token if token is None else token
        )
        answer = self.talk(self.held.requests.port, request)
        if not answer:
            return -1, 0
        _, number, given, _ = REPLY.unpack(answer)
        return number, given

    def talk(self, port: int, request: bytes) -> bytes:
        """The answer of the door at *port*, while the loop runs."""
        answers: list[bytes] = []
        bell, rope = socket.socketpair()

        def ask() -> None:
            with rope, socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
                client.sendall(request)
                answers.append(client.recv(999))

        thread = threading.Thread(target=ask)
        with bell:
            self.loop.watch(bell.fileno(), IN, lambda events: self.loop.stop())
            thread.start()
            self.loop.run()
            self.loop.unwatch(bell.fileno())
        thread.join(PATIENCE)
        return answers[0]


@pytest.fixture
def asked(place: Path) -> Iterator[Callable[[str], Asked]]:
    pytest.importorskip("netsandbox_interpose._native")
    (place / "state").mkdir()
    made: list[Asked] = []

    def asked(strategy: str) -> Asked:
        wanted = LocalhostSettings(strategy=strategy, count=2, gateway_port=ports.free_port())
        settings = mac_settings(wanted, library=True)
        held = SeatbeltReservation(settings, str(place / "state"), new_session_id(), opens=False)
        made.append(Asked(held, place / "stderr"))
        return made[-1]

    yield asked
    for each in made:
        each.localhost.close()
        each.stderr.close()
        each.loop.close()
        each.held.close()


def test_a_port_becomes_one_of_the_window_and_stays_it(asked: Any) -> None:
    each = asked("rewire-port")
    first = each.ask(3000)
    assert first[0] == 0
    assert first[1] in each.held.window
    assert each.ask(3000) == first
    assert [record["event"] for record in each.log.records] == ["rewrite"]


def test_a_server_is_reached_by_the_sessions_name(asked: Any) -> None:
    """By the same gateway as on Linux; its own number is the one that it asked for."""
    each = asked("rewire-port")
    gateway = each.held.settings.gateway_port
    request = f"GET / HTTP/1.1\r\nHost: {each.held.name}.localhost:{gateway}\r\n\r\n".encode()
    assert each.talk(gateway, request).startswith(b"HTTP/1.1 502 ")  # nothing listens yet
    _, port = each.ask(3000)
    heard: list[bytes] = []

    def serve(server: socket.socket) -> None:
        with server.accept()[0] as peer:
            heard.append(peer.recv(999))
            peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with socket.create_server(("127.0.0.1", port)) as server:
        threading.Thread(target=serve, args=(server,)).start()
        assert each.talk(gateway, request).startswith(b"HTTP/1.1 204 ")
        assert b"Host: localhost:3000\r\n" in heard[0]
        (shown,) = each.localhost.status()
        assert shown["url"] == f"http://{each.held.name}.localhost:{gateway}/"


def test_when_the_window_is_full_what_nobody_has_is_given_again(asked: Any) -> None:
    each = asked("rewire-port")
    given = {each.ask(port)[1] for port in (3000, 3001)}
    assert given == set(each.held.window.ports)
    assert each.ask(3002)[1] in given
    with socket.socket() as one, socket.socket() as other:
        for sock, port in zip((one, other), sorted(given), strict=True):
            sock.bind(("127.0.0.1", port))
            sock.listen()
        assert each.ask(3003) == (errno.EADDRINUSE, 0)
        assert {shown["host_port"] for shown in each.localhost.status()} <= given


@pytest.mark.attack(184)
def test_without_the_maps_token_nobody_is_answered(asked: Any) -> None:
    each = asked("rewire-port")
    wrong = bytes(len(each.held.map.token))
    assert each.ask(3000, token=wrong) == (-1, 0)
    assert each.log.records == []


def test_with_rewire_device_only_ports_of_the_window_are_given(asked: Any) -> None:
    """Seatbelt would refuse the others; here it is said, and recorded."""
    each = asked("rewire-device")
    assert each.ask(each.held.window.base) == (0, each.held.window.base)
    assert each.ask(3000) == (errno.EACCES, 0)
    assert each.log.records[-1]["verdict"] == "deny"
    assert each.localhost.status() == []


def test_with_fail_what_is_outside_of_the_window_is_refused_recorded_and_told(asked: Any) -> None:
    each = asked("fail")
    assert each.ask(each.held.window.base) == (0, each.held.window.base)
    assert each.log.records == []
    assert each.ask(3000) == (errno.EACCES, 0)
    assert [(record["event"], record["reason"]) for record in each.log.records] == [("bind", "outside-window")]
    assert "bind to 127.0.0.1:3000 refused" in Path(each.stderr.name).read_text()


def test_with_fail_any_port_is_one_of_the_window(asked: Any) -> None:
    each = asked("fail")
    error, port = each.ask(0)
    assert (error, port in each.held.window) == (0, True)
