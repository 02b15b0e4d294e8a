"""Ports of the host that a session may reach: recorded before a byte moves, joined as they are, ended as they end."""

from __future__ import annotations

import _socket
import errno
import gc
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from netsandbox_portmap import host_door
from netsandbox_portmap.host_door import HostDoor, HostSockets
from netsandbox_portmap.localhost_settings import HostPort

from netsandbox.runtime.loop import Loop
from netsandbox.runtime.relay import RelayPool
from tests.rig import ports
from tests.rig.counting_listener import CountingListener
from tests.rig.waiting import turn_until

PATIENCE = 10.0
Make = Callable[[int | HostPort], "Scene"]


class Scene:
    """A loop that the test turns itself; a door whose socket stands for the one inside; a server of the host."""

    def __init__(self, log: Any, port: HostPort) -> None:
        self.log = log
        self.errors: list[BaseException] = []
        self.unheard: list[tuple[HostPort, str]] = []
        self.loop = Loop(self.errors.append)
        self.relays = RelayPool(self.loop)
        self.inside = CountingListener(_socket.AF_INET, _socket.SOCK_STREAM)
        self.inside.bind(("127.0.0.1", 0))
        self.place = self.inside.getsockname()
        self.door = HostDoor(self.loop, self.inside, port, log, self.relays, lambda *told: self.unheard.append(told))

    def until(self, condition: Callable[[], bool]) -> None:
        turn_until(self.loop, condition)

    def client(self) -> socket.socket:
        """One that the door has let in."""
        before = self.inside.accepts
        client = socket.create_connection(self.place, timeout=PATIENCE)
        self.until(lambda: self.inside.accepts > before)
        return client

    def close(self) -> None:
        self.door.close()
        self.relays.close()
        self.loop.close()
        assert self.errors == []


@pytest.fixture
def make(log: Any) -> Iterator[Make]:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    scenes: list[Scene] = []

    def begin(port: int | HostPort) -> Scene:
        scenes.append(Scene(log, HostPort(port) if isinstance(port, int) else port))
        return scenes[-1]

    yield begin
    for scene in scenes:
        scene.close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def was_reset(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_bytes_go_both_ways_and_are_counted(make: Make, server: socket.socket, log: Any) -> None:
    port = server.getsockname()[1]
    scene = make(port)
    with scene.client() as client:
        scene.until(lambda: scene.relays.connections == 1)
        (egress,) = log.of("egress")
        assert (egress["verdict"], egress["rule"], egress["door"]) == ("allow", f"--connect-host {port}", "host")
        assert (egress["host"], egress["port"]) == ("localhost", port)
        peer, _ = server.accept()
        with peer:
            client.sendall(b"ask")
            client.shutdown(socket.SHUT_WR)
            peer.setblocking(False)
            scene.until(lambda: _ready(peer))
            assert peer.recv(10) == b"ask"
            peer.sendall(b"answer")
    scene.until(lambda: scene.door.flows == 0)
    (end,) = log.of("egress.end")
    assert (end["outcome"], end["bytes_up"], end["port"]) == ("closed", 3, port)
    assert scene.unheard == []


def _ready(sock: socket.socket) -> bool:
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_no_record_no_connection(make: Make, server: socket.socket, log: Any) -> None:
    """INV-5: with a log that cannot be written the host is not reached at all."""
    scene = make(server.getsockname()[1])
    log.failed = "disk full"
    with scene.client() as client:
        scene.until(lambda: scene.door.flows == 0)
        assert was_reset(client)
    server.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.accept()


def test_too_many_connections_are_hung_up(
    make: Make, server: socket.socket, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_door, "MAX_CONNECTIONS", 1)
    scene = make(server.getsockname()[1])
    with scene.client():
        scene.until(lambda: scene.door.flows == 1)
        with scene.client() as second:
            assert was_reset(second)
        assert scene.door.flows == 1
        assert len(log.of("egress")) == 1


def test_nothing_there_is_a_reset_and_an_end_in_the_log(make: Make, log: Any) -> None:
    port = ports.free_port()
    scene = make(port)
    with scene.client() as client:
        scene.until(lambda: bool(log.of("egress.end")))
        assert was_reset(client)
    assert scene.unheard == [(HostPort(port), "")]
    assert [(end["outcome"], end["bytes_up"], end["bytes_down"]) for end in log.of("egress.end")] == [
        ("unreachable", 0, 0)
    ]
    assert scene.door.flows == 0


def test_a_server_on_ipv6_alone_is_reached(make: Make, log: Any) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        scene = make(server.getsockname()[1])
        with scene.client():
            scene.until(lambda: scene.relays.connections == 1)
            server.accept()[0].close()


def test_no_descriptor_for_the_host_is_a_reset(
    make: Make, server: socket.socket, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EMFILE: the connection is refused and its end is in the log (INV-1)."""
    scene = make(server.getsockname()[1])
    monkeypatch.setattr(HostSockets, "take", staticmethod(lambda family, done: done(None)))
    with scene.client() as client:
        scene.until(lambda: bool(log.of("egress.end")))
        assert was_reset(client)
    assert log.of("egress.end")[0]["outcome"] == "unreachable"


def test_a_socket_that_cannot_be_made_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    HostSockets.take(_socket.AF_INET, given.append)
    assert not os.get_blocking(given[0].fileno())
    assert not os.get_inheritable(given[0].fileno())
    given.pop().close()

    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr(host_door._socket, "socket", fail)
    HostSockets.take(2, given.append)
    assert given == [None]


def test_closing_the_door_ends_what_is_open_and_says_so_once(make: Make, server: socket.socket, log: Any) -> None:
    scene = make(server.getsockname()[1])
    with scene.client() as client:
        scene.until(lambda: scene.relays.connections == 1)
        scene.door.close()
        assert scene.door.flows == 0
        assert was_reset(client)
        with socket.socket() as late:
            assert late.connect_ex(scene.place) == errno.ECONNREFUSED
    assert len(log.of("egress.end")) == 1


def test_closing_while_the_host_is_being_reached(
    make: Make, server: socket.socket, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Any] = []
    monkeypatch.setattr(HostSockets, "take", staticmethod(lambda family, done: waiting.append(done)))
    scene = make(server.getsockname()[1])
    with scene.client() as client:
        scene.until(lambda: len(waiting) == 1)
        scene.door.close()
        assert was_reset(client)
        late = _socket.socket()
        waiting[0](late)
        assert late.fileno() == -1  # one that comes too late is closed
    assert [end["outcome"] for end in log.of("egress.end")] == ["unreachable"]


def test_a_log_that_fails_later_does_not_keep_a_connection_alive(make: Make, server: socket.socket, log: Any) -> None:
    scene = make(server.getsockname()[1])
    with scene.client():
        scene.until(lambda: scene.relays.connections == 1)
        log.failed = "disk full"
        server.accept()[0].close()
    scene.until(lambda: scene.door.flows == 0)
