"""A connection inside is made, refused, or given up in time; and every socket is closed."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from netsandbox_portmap.inside_dial import InsideDial


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
