"""A door's sockets on the shared loopback: one number, both addresses, nobody beside us."""

from __future__ import annotations

import errno
import socket
import sys
from typing import Any

import pytest

from netsandbox.backends.seatbelt import door_sockets
from netsandbox.backends.seatbelt.door_sockets import DoorSockets
from netsandbox.errors import HostError


def test_both_addresses_listen_at_one_number() -> None:
    door = DoorSockets((), listens=True)
    assert {sock.getsockname()[1] for sock in door.sockets} == {door.port}
    for address in ("127.0.0.1", "::1"):
        socket.create_connection((address, door.port), 5).close()
    door.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", door.port), 5)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0", "::"])
@pytest.mark.parametrize("reuse", [False, True])
def test_nobody_can_bind_beside_us(address: str, reuse: bool) -> None:
    if reuse and address in ("0.0.0.0", "::") and sys.platform == "darwin":
        pytest.skip("a Mac may let a wildcard in beside us; what is for our address comes to us all the same")
    door = DoorSockets((), listens=True)
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as other:
        if ":" in address:
            other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if reuse:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind((address, door.port))
    door.close()


def test_a_closed_port_is_held_and_refuses() -> None:
    door = DoorSockets((), listens=False)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", door.port), 5)
    door.close()


def test_a_number_of_the_window_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Window:
        def __contains__(self, port: object) -> bool:
            assert isinstance(port, int)
            seen.append(port)
            return len(seen) < 3

    door = DoorSockets(Window(), listens=False)
    assert door.port == seen[-1]
    assert len(door.sockets) == 2
    door.close()


def test_where_everything_is_taken_there_is_an_error_and_nothing_stays_open() -> None:
    class Everything:
        def __contains__(self, port: object) -> bool:
            return True

    with pytest.raises(HostError, match="no port of localhost is free"):
        DoorSockets(Everything(), listens=False)


def failing(monkeypatch: pytest.MonkeyPatch, number: int, family: int, of: int = socket.SOCK_STREAM) -> None:
    real = door_sockets.bind_socket

    def bound(address: str, port: int, kind: int) -> Any:
        if (socket.AF_INET6 if ":" in address else socket.AF_INET, kind) == (family, of):
            raise OSError(number, "no")
        return real(address, port, kind)

    monkeypatch.setattr(door_sockets, "bind_socket", bound)


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_a_host_without_ipv6_has_one_address(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    failing(monkeypatch, number, socket.AF_INET6)
    door = DoorSockets((), listens=True, takes_datagrams=True)
    assert (len(door.sockets), len(door.datagrams)) == (1, 1)
    door.close()


def test_a_host_without_ipv4_has_no_door(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, errno.EADDRNOTAVAIL, socket.AF_INET, socket.SOCK_DGRAM)
    with pytest.raises(HostError, match="cannot make a door"):
        DoorSockets((), listens=True, takes_datagrams=True)


def test_datagrams_come_at_the_same_number_to_both_addresses() -> None:
    door = DoorSockets((), listens=True, takes_datagrams=True)
    families = [socket.AF_INET, socket.AF_INET6]
    assert [sock.family for sock in door.datagrams] == families == [sock.family for sock in door.sockets]
    for sock, address in zip(door.datagrams, ("127.0.0.1", "::1"), strict=True):
        with socket.socket(sock.family, socket.SOCK_DGRAM) as client:
            client.sendto(b"asked", (address, door.port))
            assert sock.recv(16) == b"asked"
        with socket.socket(sock.family, socket.SOCK_DGRAM) as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                other.bind((address, door.port))
    door.close()
    assert door.datagrams == []


def test_a_number_that_is_taken_for_datagrams_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused = door_sockets.bind_socket, []

    def bound(address: str, port: int, kind: int) -> Any:
        if kind == socket.SOCK_DGRAM and len(refused) < 2:
            refused.append(port)
            raise OSError(errno.EADDRINUSE, "in use")
        return real(address, port, kind)

    monkeypatch.setattr(door_sockets, "bind_socket", bound)
    door = DoorSockets((), listens=True, takes_datagrams=True)
    assert len(refused) == 2
    assert {sock.getsockname()[1] for sock in (*door.sockets, *door.datagrams)} == {door.port}
    door.close()


def test_without_need_no_datagrams_are_taken() -> None:
    door = DoorSockets((), listens=True)
    assert door.datagrams == []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", door.port))
    door.close()


def test_another_failure_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, errno.EMFILE, socket.AF_INET)
    with pytest.raises(HostError, match="cannot make a door"):
        DoorSockets((), listens=True)
