"""Canaries: sockets on the host that must hear nothing. No thread: the kernel keeps what arrives until we count it.

A connection that was made and closed again stays in the accept queue, and a datagram in the receive buffer, so nothing
that got out can be missed by looking late.
"""

from __future__ import annotations

import socket

BACKLOG = 16
MOST = 1000


class Canary:
    """One listening or receiving socket. `heard()` counts what has arrived since it was made."""

    def __init__(self, family: int, kind: int, address: str) -> None:
        self.address = address
        self._heard = 0
        self._stream = kind == socket.SOCK_STREAM
        self._socket = socket.socket(family, kind)
        try:
            if family == socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.bind(address if family == socket.AF_UNIX else (address, 0))
            if self._stream:
                self._socket.listen(BACKLOG)
            self._socket.settimeout(0)
        except OSError:
            self._socket.close()
            raise

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def heard(self) -> int:
        for _ in range(MOST):
            try:
                self._take()
            except BlockingIOError:
                break
            self._heard += 1
        return self._heard

    def close(self) -> None:
        self._socket.close()

    def _take(self) -> None:
        if self._stream:
            self._socket.accept()[0].close()
        else:
            self._socket.recv(1)
