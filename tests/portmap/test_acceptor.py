"""Ports of the host: bound by nobody else, all of them or none."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest
from netsandbox_portmap import acceptor as module
from netsandbox_portmap.acceptor import MAX_QUEUE, Acceptor, bind, bind_all, listen_all, tune


@pytest.fixture
def accept(rig: Any) -> Any:
    """An acceptor and the list of what it received."""
    received: list[Any] = []

    class Received:
        def close(self) -> None:
            for sock in received:
                sock.close()

    rig.keep(Received())
    made = rig.keep(rig.run(lambda: Acceptor(rig.loop, bind("127.0.0.1", 0), received.append)))
    return made, received


@pytest.mark.parametrize("reuse", [0, 1])
def test_a_bound_port_is_nobody_elses(reuse: int) -> None:
    ours = bind("127.0.0.1", 0)
    with socket.socket() as theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        for address in ("127.0.0.1", "0.0.0.0"):
            with pytest.raises(OSError, match="in use"):
                theirs.bind((address, ours.getsockname()[1]))
    ours.close()


@pytest.mark.parametrize("reuse", [0, 1])
def test_a_port_somebody_listens_on_is_not_shared(reuse: int) -> None:
    with socket.socket() as theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse)
        theirs.bind(("0.0.0.0", 0))
        theirs.listen()
        for address in ("127.0.0.1", "127.9.8.7"):
            with pytest.raises(OSError, match="in use"):
                bind(address, theirs.getsockname()[1])


def test_our_own_ended_connections_do_not_keep_us_out(rig: Any, accept: Any, speak: Any) -> None:
    made, received = accept
    rig.client(made.port)
    speak.wait_for(lambda: len(received) == 1)
    rig.run(made.close)
    bind("127.0.0.1", made.port).close()


def test_all_or_none_is_bound(rig: Any, speak: Any) -> None:
    taken = rig.server(address="::1", port=speak.free_range(1))
    with pytest.raises(OSError, match="in use"):
        bind_all(("127.0.0.1", "::1"), taken.port)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", taken.port))


def test_all_or_none_listens(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bind("127.0.0.1", 0), bind("127.0.0.1", 0)
    port = first.getsockname()[1]
    real = Acceptor

    def second_fails(loop: Any, sock: Any, receive: Any, **more: Any) -> Any:
        if sock is second:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return real(loop, sock, receive, **more)

    monkeypatch.setattr(module, "Acceptor", second_fails)
    with pytest.raises(OSError, match="in use"):
        rig.run(lambda: listen_all(rig.loop, [first, second], print))
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_accepted_sockets_inherit_their_tuning() -> None:
    with socket.socket() as listener:
        tune(listener)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as client:
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                for side in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                    assert 0 < accepted.getsockopt(socket.SOL_SOCKET, side) <= 2 * MAX_QUEUE  # socket(7): it is doubled
            assert client.recv(1) == b""
