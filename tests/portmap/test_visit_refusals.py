"""A client with another name, a slow client and a client over the limit each get a response and reach nothing."""

from __future__ import annotations

import contextlib
import errno
from typing import Any

import pytest
from netsandbox_portmap import forward, gateway
from netsandbox_portmap import visit as module

from tests.rig.by_name import NAME, ask


@pytest.mark.attack(183)
@pytest.mark.parametrize(
    "host", ["evil.test", "xlocalhost", "127.0.0.1", "shop.localhost.evil.test", "[::1]", "3000", "localhost.evil.test"]
)
def test_a_foreign_host_is_answered_421_and_reaches_nothing(
    rig: Any, door: Any, pages: int, speak: Any, host: str
) -> None:
    """A page whose name was rebound to 127.0.0.1 sends its own name (DNS rebinding)."""
    answer = ask(rig, speak, door.port, f"GET / HTTP/1.1\r\nHost: {host}:{door.port}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 421 Misdirected Request\r\n")
    assert b"shop" not in answer  # no name of a session is told to another site's page
    assert b"`netsandbox ports`" in answer
    assert rig.inside.taken == []


@pytest.mark.parametrize("host", [NAME, "4000.shop.localhost"])
def test_nothing_published_is_502_and_says_what_to_do(rig: Any, door: Any, speak: Any, host: str) -> None:
    answer = ask(rig, speak, door.port, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"Start the server and reload; see `netsandbox ports`." in answer


def test_nothing_listening_any_more_is_502_and_is_told(rig: Any, door: Any, speak: Any) -> None:
    server = rig.server()
    server.close()
    door.book.publish(3000, server.port)
    answer = ask(rig, speak, door.port, f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert door.book.refused == [server.port]


def test_a_session_that_gives_no_socket_is_502(rig: Any, door: Any, pages: int, speak: Any) -> None:
    rig.inside.empty = True
    answer = ask(rig, speak, door.port, f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert door.book.refused == []


def test_head_is_answered_without_a_body(rig: Any, door: Any, speak: Any) -> None:
    answer = ask(rig, speak, door.port, f"HEAD / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x03\x01\x02\x00\x01\x00", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: shop.localhost\r\nHost: shop.localhost\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000, 431),
    ],
)
def test_garbage_is_answered_and_reaches_nothing(
    rig: Any, door: Any, pages: int, speak: Any, data: bytes, status: int
) -> None:
    assert ask(rig, speak, door.port, data).startswith(b"HTTP/1.1 %d " % status)
    assert rig.inside.taken == []


@pytest.mark.attack(192)
def test_a_client_that_dawdles_is_told_so(rig: Any, door: Any, speak: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_DEADLINE", 2.0)  # begun within it, even on a busy machine
    assert ask(rig, speak, door.port, b"GET / HT").startswith(b"HTTP/1.1 408 ")


def test_a_spare_connection_ends_without_a_word(
    rig: Any, door: Any, speak: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEAD_DEADLINE", 0.1)
    assert speak.read_all(rig.client(door.port)) == b""


def test_a_client_that_does_not_hang_up_is_not_waited_for(
    rig: Any, door: Any, speak: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DRAIN_DEADLINE", 0.1)
    client = rig.client(door.port)
    client.sendall(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    assert client.recv(12) == b"HTTP/1.1 421"
    speak.wait_for(lambda: rig.run(lambda: door.connections) == 0)


@pytest.mark.attack(192)
def test_past_the_limit_of_open_heads_newcomers_wait(
    rig: Any, door: Any, pages: int, speak: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "MAX_HEADS", 2)
    waiting = [rig.client(door.port) for _ in range(2)]
    speak.wait_for(lambda: rig.run(lambda: door.connections) == 2)
    third = rig.client(door.port)
    third.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
    third.settimeout(0.2)
    with pytest.raises(TimeoutError):
        third.recv(1)
    third.settimeout(20)
    waiting.pop().close()
    assert b" 200 " in speak.read_all(third)


def test_past_the_limit_of_connections_newcomers_see_a_reset(
    rig: Any, door: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "MAX_CONNECTIONS", 0)
    with pytest.raises(ConnectionResetError):
        rig.client(door.port).recv(1)


def test_one_that_cannot_be_watched_ends_and_the_door_stays(
    rig: Any, door: Any, pages: int, speak: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(rig.loop, "watch", no_room)
        with contextlib.suppress(ConnectionResetError):  # it may come before connect() has returned
            assert speak.read_all(rig.client(door.port)) == b""
    assert rig.run(lambda: door.connections) == 0
    request = f"GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode()
    assert b" 200 " in ask(rig, speak, door.port, request)


def test_a_listener_that_does_not_answer_is_502(
    rig: Any, door: Any, speak: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward.InsideDial.__init__, "__defaults__", (0.1,))
    rig.inside.waiting = []
    door.book.publish(3000, 9)
    answer = ask(rig, speak, door.port, f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")
    rig.run(rig.inside.waiting[0])  # a socket that comes too late is closed


def test_close_hangs_up_on_everybody(rig: Any, door: Any, speak: Any) -> None:
    def serve(peer: Any) -> None:
        peer.recv(999)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        peer.recv(1)

    door.book.publish(3000, rig.server(serve).port)
    talking, waiting, answered = (rig.client(door.port) for _ in range(3))
    talking.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
    assert talking.recv(15) == b"HTTP/1.1 200 OK"
    answered.sendall(b"\0")
    assert answered.recv(5) == b"HTTP/"
    speak.wait_for(lambda: rig.run(lambda: door.connections) == 3)
    rig.run(door.close)
    assert rig.run(lambda: door.connections) == 0
    assert rig.relays.connections == 0
    for client in (talking, waiting, answered):
        speak.read_all(client)
