"""One forwarded connection: bytes both ways, or a reset; and `done` exactly once."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from netsandbox_portmap.acceptor import Acceptor, bind
from netsandbox_portmap.forward import Forward


class LaunchMethod:
    """A host port whose connections are forwarded to *addresses*."""

    def __init__(self, rig: Any) -> None:
        self.rig = rig
        self.addresses: list[tuple[str, int]] = []
        self.open: list[Forward] = []
        self.done: list[Forward] = []
        self.moved: list[tuple[int, int] | None] = []
        self.refused = 0
        self.acceptor = rig.run(lambda: Acceptor(rig.loop, bind("127.0.0.1", 0), self._receive))
        self.port = self.acceptor.port

    def _receive(self, client: Any) -> None:
        forward = Forward(client, self.rig.forwarding, self._over, self._refuse)
        self.open.append(forward)
        forward.start(self.rig.loop, self.rig.inside, self.addresses)

    def _over(self, forward: Forward, moved: tuple[int, int] | None) -> None:
        self.done.append(forward)
        self.moved.append(moved)

    def _refuse(self) -> None:
        self.refused += 1

    def close(self) -> None:
        self.acceptor.close()
        for forward in self.open:
            forward.close()
        assert len(self.done) == len(self.open)  # each of them, once


@pytest.fixture
def way(rig: Any) -> Any:
    return rig.keep(LaunchMethod(rig))


@pytest.mark.parametrize("later", [False, True])
def test_bytes_go_both_ways_until_both_have_ended(rig: Any, way: Any, speak: Any, later: bool) -> None:
    rig.inside.later = later
    way.addresses = [("127.0.0.1", rig.server().port)]
    client = rig.client(way.port)
    client.sendall(b"x" * 1_000_000)
    client.shutdown(socket.SHUT_WR)
    assert speak.read_all(client) == b"x" * 1_000_000
    speak.wait_for(lambda: way.done == way.open)
    assert way.moved == [(1_000_000, 1_000_000)]
    assert rig.forwarding.connections == 0


def test_a_refusal_inside_is_a_reset_outside_and_is_told(rig: Any, way: Any) -> None:
    server = rig.server()
    server.close()
    way.addresses = [("127.0.0.1", server.port)]
    with pytest.raises(ConnectionResetError):
        rig.client(way.port).recv(1)
    assert rig.run(lambda: (way.refused, way.moved)) == (1, [None])


def test_a_session_that_gives_no_socket_is_a_reset_but_no_refusal(rig: Any, way: Any) -> None:
    rig.inside.empty = True
    way.addresses = [("127.0.0.1", 80)]
    with pytest.raises(ConnectionResetError):
        rig.client(way.port).recv(1)
    assert rig.run(lambda: way.refused) == 0


def test_closed_while_it_waits_the_client_sees_a_reset(rig: Any, way: Any, speak: Any) -> None:
    rig.inside.waiting = []
    way.addresses = [("127.0.0.1", 80)]
    client = rig.client(way.port)
    speak.wait_for(lambda: len(way.open) == 1)
    rig.run(way.open[0].close)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    rig.run(way.open[0].close)
    rig.run(rig.inside.waiting[0])


def test_closed_while_it_relays_both_sides_end(rig: Any, way: Any, speak: Any) -> None:
    way.addresses = [("127.0.0.1", rig.server().port)]
    client = rig.client(way.port)
    client.sendall(b"x")
    assert client.recv(1) == b"x"
    rig.run(way.open[0].close)
    assert speak.read_all(client) == b""
    assert rig.forwarding.connections == 0
