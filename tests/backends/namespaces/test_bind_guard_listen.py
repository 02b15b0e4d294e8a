"""Nothing listens outside the window, however its socket came to the port it has (INV-7)."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
from netsandbox_portmap.bind_rule import BindRule
from netsandbox_portmap.window import Window

from netsandbox.backends.namespaces import remote_process
from tests.rig.guarded import ANY, DEVICE, V4, V6, Scene, port_of, v4


@pytest.mark.parametrize("family", [V4, V6])
def test_listening_unbound_gets_a_port_of_the_window(guarded: Scene, window: Window, family: int) -> None:
    """The kernel would have chosen any."""
    sock = guarded.socket(family)
    assert guarded.listen(sock) == 0
    assert port_of(sock) in window
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    assert guarded.heard == [(sock.getsockname()[0], port_of(sock), os.getpid(), "/bin/probe")]
    assert [(r["verdict"], r["address"], r["port"]) for r in guarded.records("bind")] == [("allow", ANY, 0)]


def test_listening_unbound_with_a_device_is_refused_told_and_recorded(
    make: Callable[[BindRule], Scene], window: Window
) -> None:
    for rule in (BindRule(window, (DEVICE,)), BindRule(None, (DEVICE,))):
        scene = make(rule)
        sock = scene.socket()
        assert scene.listen(sock) == errno.EADDRNOTAVAIL
        assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        assert scene.told == [(ANY, 0)]
        assert scene.records("bind")[-1]["reason"] == "wrong-device"


def test_what_was_bound_in_the_window_listens_and_is_heard_of(guarded: Scene, window: Window) -> None:
    sock = guarded.socket()
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == 0
    assert guarded.heard == []
    assert guarded.listen(sock) == 0
    assert guarded.heard == [("127.0.0.1", window.base, os.getpid(), "/bin/probe")]
    with socket.create_connection(("127.0.0.1", window.base), timeout=20):
        sock.accept()[0].close()


def test_listen_has_the_callers_backlog(guarded: Scene, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(remote_process, "listen", lambda fd, backlog: seen.append(backlog) or 0)
    sock = guarded.socket()
    guarded.bind(sock, v4("127.0.0.1", window.base))
    for backlog in (0, 128, 0xFFFFFFFF, 7 << 32 | 5):
        guarded.listen(sock, backlog)
    assert seen == [0, 128, 0xFFFFFFFF, 5]


def test_a_socket_that_came_to_an_outside_port_some_other_way_may_not_listen(guarded: Scene) -> None:
    """The guard asks the socket itself, not its memory of binds."""
    sock = guarded.socket()
    sock.bind(("127.0.0.1", 0))
    port = port_of(sock)
    assert guarded.listen(sock) == errno.EACCES
    assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    assert guarded.heard == []
    assert guarded.told == [("127.0.0.1", port)]
    assert [(r["reason"], r["port"]) for r in guarded.records("listen")] == [("outside-window", port)]


@pytest.mark.parametrize("address", ["127.0.0.2", "::ffff:127.0.0.2"])
def test_a_socket_on_another_device_may_not_listen(guarded: Scene, window: Window, address: str) -> None:
    sock = guarded.socket(V6 if ":" in address else V4)
    sock.bind((address, window.base))
    assert guarded.listen(sock) == errno.EADDRNOTAVAIL
    assert guarded.heard == []


def test_a_socket_with_an_address_but_no_port_gets_none_where_there_is_no_window(
    make: Callable[[BindRule], Scene],
) -> None:
    """IP_BIND_ADDRESS_NO_PORT: listening would let the kernel choose."""
    scene = make(BindRule(None, (DEVICE,)))
    sock = scene.socket()
    sock.setsockopt(socket.IPPROTO_IP, 24, 1)
    assert scene.bind(sock, v4(DEVICE, 0)) == 0
    assert port_of(sock) == 0
    assert scene.listen(sock) == errno.EACCES
    assert scene.heard == []


def stale_socket() -> socket.socket:
    """One that still names the port of a connection that has ended, and that nobody else on this machine uses now."""
    for _ in range(100):
        sock = socket.socket()
        with socket.create_server(("127.0.0.1", 0)) as server:
            sock.connect(server.getsockname())
            server.accept()[0].close()
        assert ctypes.CDLL(None).connect(sock.fileno(), bytes(16), 16) == 0  # AF_UNSPEC ends the connection
        with socket.socket() as probe:
            if remote_process.bind(probe.fileno(), v4("0.0.0.0", port_of(sock))) == 0:
                return sock
        sock.close()
    raise AssertionError("every ephemeral port is in use")


def test_a_socket_whose_connection_ended_is_held_at_the_port_it_shows(make: Callable[[BindRule], Scene]) -> None:
    """It still names the port that the kernel gave it and took back: listening would move it to any other."""
    sock = stale_socket()
    port = port_of(sock)
    scene = make(BindRule(Window(port, 1, DEVICE), ("127.0.0.1", ANY)))
    scene.open.append(sock)
    assert scene.listen(sock) == 0
    assert port_of(sock) == port
    assert [heard[1] for heard in scene.heard] == [port]


def test_a_port_that_was_let_go_between_our_two_calls_does_not_stay_open(
    guarded: Scene, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel chose another one when we listened: the socket is shut again, and nobody hears of it."""
    sock = guarded.socket()
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == 0
    moved = guarded.socket()

    def listen(fd: int, backlog: int) -> int:
        moved.bind(("127.0.0.1", 0))
        os.dup2(moved.fileno(), fd)
        moved.listen()
        return 0

    monkeypatch.setattr(remote_process, "listen", listen)
    assert guarded.listen(sock) == errno.EACCES
    assert guarded.heard == []
    assert not moved.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def test_a_port_that_somebody_else_has_by_now_is_not_listened_on(
    guarded: Scene, window: Window, monkeypatch: Any
) -> None:
    sock = guarded.socket()
    assert guarded.bind(sock, v4("127.0.0.1", window.base)) == 0
    monkeypatch.setattr(remote_process, "bind", lambda fd, address: errno.EADDRINUSE)
    assert guarded.listen(sock) == errno.EADDRINUSE
    assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    assert guarded.heard == []
