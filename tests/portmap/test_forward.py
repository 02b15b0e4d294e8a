"""One forwarded connection: bytes both ways, or a reset; and `done` exactly once."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from netsandbox_portmap.acceptor import Acceptor, bind
from netsandbox_portmap.forward import Forward, InsideDial


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
        forward = Forward(client, self.rig.relays, self._over, self._refuse)
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
    assert rig.relays.connections == 0


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
    assert rig.relays.connections == 0


# The connection inside: it is made, refused, or given up in time, and every socket is closed.


def reach(rig: Any, *addresses: tuple[str, int], deadline: float = 10.0) -> tuple[Any, str]:
    told = threading.Event()
    results: list[tuple[Any, str]] = []

    def done(sock: Any, reason: str) -> None:
        results.append((sock, reason))
        told.set()

    rig.run(lambda: InsideDial(rig.loop, rig.inside, addresses, done, deadline).start())
    assert told.wait(20)
    rig.run(lambda: None)
    assert len(results) == 1
    return results[0]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_listener_is_reached(rig: Any, address: str, later: bool) -> None:
    server = rig.server(address=address)
    rig.inside.later = later
    sock, reason = reach(rig, (address, server.port))
    assert reason == ""
    assert sock.getpeername()[:2] == (address, server.port)
    sock.close()


def test_the_second_address_is_tried_when_the_first_refuses(rig: Any) -> None:
    server = rig.server(address="::1")
    sock, _ = reach(rig, ("127.0.0.1", server.port), ("::1", server.port))
    assert rig.inside.taken == [socket.AF_INET, socket.AF_INET6]
    sock.close()


def test_a_refusal_is_told(rig: Any) -> None:
    server = rig.server()
    server.close()
    assert reach(rig, ("127.0.0.1", server.port)) == (None, "refused")


def test_an_address_that_cannot_be_dialled_is_a_refusal(rig: Any) -> None:
    assert reach(rig, ("127.0.0.1", 0)) == (None, "refused")
    assert reach(rig, ("::ffff:garbage", 80)) == (None, "refused")


def test_nowhere_to_go_is_a_refusal(rig: Any) -> None:
    assert reach(rig) == (None, "refused")


def test_a_session_without_sockets_is_told(rig: Any) -> None:
    rig.inside.empty = True
    assert reach(rig, ("127.0.0.1", 80)) == (None, "unable")


def full_listener() -> tuple[socket.socket, list[socket.socket]]:
    """One whose queue is full, so that the kernel answers nobody."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = []
    for _ in range(4):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(listener.getsockname())
        waiting.append(sock)
    return listener, waiting


def test_a_listener_that_does_not_accept_is_given_up(rig: Any) -> None:
    listener, waiting = full_listener()
    assert reach(rig, listener.getsockname(), deadline=0.1) == (None, "late")
    for sock in (listener, *waiting):
        sock.close()


def test_a_socket_that_never_comes_is_given_up_and_closed_when_it_does(rig: Any) -> None:
    rig.inside.waiting = []
    assert reach(rig, ("127.0.0.1", 80), deadline=0.05) == (None, "late")
    rig.run(rig.inside.waiting[0])


def test_taken_back_it_tells_nobody(rig: Any) -> None:
    told: list[Any] = []
    listener, waiting = full_listener()
    attempt = InsideDial(rig.loop, rig.inside, [listener.getsockname()], lambda *result: told.append(result), 0.1)
    rig.run(lambda: (attempt.start(), attempt.close()))  # in one turn, before its time is over
    rig.inside.waiting = []
    early = InsideDial(rig.loop, rig.inside, [("127.0.0.1", 80)], lambda *result: told.append(result), 0.1)
    rig.run(lambda: (early.start(), early.close()))
    rig.inside.empty = True
    rig.run(rig.inside.waiting[0])
    assert rig.effort(0.2) < 0.5
    assert told == []
    for sock in (listener, *waiting):
        sock.close()
