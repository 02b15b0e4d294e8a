"""The relay of published ports: all bytes, in order, both ways, for as long as it takes, and counted."""

from __future__ import annotations

import _socket
import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netsandbox.runtime import pump
from netsandbox.runtime.relay import RelayPool
from tests.rig.loop_thread import LoopThread
from tests.rig.waiting import PATIENCE, wait_for


def pair() -> tuple[socket.socket, _socket.socket]:
    """A connected TCP pair; the second one is for the relay."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname(), timeout=PATIENCE)
        theirs, _ = listener.accept()
    relayed = _socket.socket(fileno=theirs.detach())
    relayed.setblocking(False)
    return ours, relayed


class Scene(LoopThread):
    def __init__(self) -> None:
        super().__init__()
        self.relays = RelayPool(self.loop)
        self.done: list[tuple[int, int]] = []
        self.ends: list[socket.socket] = []

    def connect(self, held: bytes = b"") -> tuple[socket.socket, socket.socket, Any]:
        (client, one), (server, two) = pair(), pair()
        self.ends += [client, server]
        relay = self.run(lambda: self.relays.join(one, two, held, lambda *counts: self.done.append(counts)))
        return client, server, relay

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_for(lambda: self.run(condition))

    def close(self) -> None:
        self.run(self.relays.close)
        self.end()
        for end in self.ends:
            end.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(1 << 20), b""))


def pour(client: socket.socket) -> int:
    """Until nobody takes any more."""
    client.settimeout(0.3)
    sent = 0
    try:
        while sent < 200_000_000:
            sent += client.send(bytes(1 << 20))
    except TimeoutError:
        pass
    return sent


def test_many_megabytes_pass_unchanged_and_are_counted(scene: Scene) -> None:
    data = os.urandom(1_000_000) * 20
    client, server, _ = scene.connect()
    sender = threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR)))
    sender.start()
    assert hashlib.sha256(read_all(server)).digest() == hashlib.sha256(data).digest()
    sender.join()
    server.sendall(b"thanks")  # half-closed is not closed
    server.close()
    assert read_all(client) == b"thanks"
    scene.wait_for(lambda: scene.done == [(len(data), 6)])
    assert (scene.relays.up, scene.relays.down) == (len(data), 6)
    assert scene.relays.connections == 0


def test_what_was_held_goes_first(scene: Scene) -> None:
    client, server, _ = scene.connect(b"held ")
    client.sendall(b"and more")
    client.shutdown(socket.SHUT_WR)
    assert read_all(server) == b"held and more"


@pytest.mark.attack(202)
def test_a_server_that_does_not_read_holds_the_client_back(scene: Scene) -> None:
    client, server, _ = scene.connect()
    sent = pour(client)
    assert sent < 200_000_000
    client.shutdown(socket.SHUT_WR)
    assert len(read_all(server)) == sent


@pytest.mark.attack(202)
def test_many_that_do_not_read_hold_little_each(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "MAX_HELD", 4 * pump.MIN_BUFFER)
    monkeypatch.setattr(pump, "SPLICE_AFTER", 1 << 40)  # what is spliced is in the kernel
    ends = [scene.connect() for _ in range(4)]
    for client, _, relay in ends:
        sent = pour(client)
        assert 0 < scene.run(lambda relay=relay: len(relay._relay.up.held)) <= pump.MIN_BUFFER
        assert sent < 200_000_000
    for client, server, _ in ends[1:]:
        client.close()
        server.close()
    scene.wait_for(lambda: scene.relays.connections == 1)
    assert scene.relays.pipes.buffer == 4 * pump.MIN_BUFFER  # who is left may read more again


def test_silence_ends_nothing_and_costs_nothing(scene: Scene) -> None:
    client, server, _ = scene.connect()
    before = scene.run(time.thread_time)
    assert scene.loop._timers == []
    time.sleep(0.3)
    assert scene.run(time.thread_time) - before < 0.1
    client.sendall(b"still here")
    assert server.recv(100) == b"still here"


def test_a_reset_on_one_side_is_a_reset_on_the_other(scene: Scene) -> None:
    client, server, _ = scene.connect()
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    with pytest.raises(ConnectionResetError):
        server.recv(1)
    scene.wait_for(lambda: scene.done == [(1, 0)])


def test_a_server_that_left_before_the_first_byte(scene: Scene) -> None:
    (client, one), (server, two) = pair(), pair()
    scene.ends += [client, server]
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    server.close()
    scene.run(lambda: scene.relays.join(one, two, b"held", lambda *counts: scene.done.append(counts)))
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert scene.run(lambda: scene.done) == [(0, 0)]


def test_close_ends_it_once(scene: Scene) -> None:
    _, server, relay = scene.connect()
    scene.run(relay.close)
    scene.run(relay.close)
    with pytest.raises(ConnectionResetError):
        server.recv(1)
    assert scene.done == [(0, 0)]


def test_closing_all_ends_all(scene: Scene) -> None:
    ends = [scene.connect() for _ in range(5)]
    assert scene.relays.connections == 5
    scene.run(scene.relays.close)
    assert scene.relays.connections == 0
    assert len(scene.done) == 5
    for client, _, _ in ends:
        with pytest.raises(ConnectionResetError):
            client.recv(1)
