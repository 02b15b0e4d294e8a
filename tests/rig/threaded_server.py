"""A server on loopback that gives each connection a thread, and what is read of a stream."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from tests.rig.waiting import PATIENCE


class ThreadedServer:
    """Serves each connection by `serve(peer)`; a connection that breaks is over, and that is all."""

    def __init__(self, serve: Callable[[socket.socket], None], address: str = "127.0.0.1", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._serve = serve
        self._socket = socket.create_server((address, port), family=family, backlog=512)
        self.address = address
        self.port: int = self._socket.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                peer, address = self._socket.accept()
            except OSError:
                return
            if not self._is_client(address):
                peer.close()
                continue
            peer.settimeout(PATIENCE)
            thread = threading.Thread(target=self._one, args=(peer,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _is_client(self, address: Any) -> bool:
        return True

    def _one(self, peer: socket.socket) -> None:
        try:
            with peer:
                self._serve(peer)
        except OSError:
            pass

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # it was closed already
            pass
        self._socket.close()
        for thread in (self._thread, *self._threads):
            thread.join(PATIENCE + 1)


def read_all(client: socket.socket) -> bytes:
    """Until the end of the stream; a reset counts as an end with nothing more."""
    data = b""
    while True:
        try:
            more = client.recv(65536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def read_exactly(client: socket.socket, size: int) -> bytes:
    """Less only where the stream ends. MSG_WAITALL waits for nothing on a socket that has a time limit of Python's."""
    data = b""
    while len(data) < size and (more := client.recv(size - len(data))):
        data += more
    return data
