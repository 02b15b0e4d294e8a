"""Small talk is not delayed, and queues stay small enough for the cache."""

from __future__ import annotations

import socket

from netsandbox_portmap.tuning import BUFFER, tune


def test_accepted_sockets_inherit_it() -> None:
    with socket.socket() as listener:
        tune(listener)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as client:
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                for side in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                    assert 0 < accepted.getsockopt(socket.SOL_SOCKET, side) <= 2 * BUFFER  # socket(7): it is doubled
            assert client.recv(1) == b""
