"""The control: a server that the policy allows. If it is not reached, the silence of the others proves nothing."""

from __future__ import annotations

import socket

SECONDS = 2.0
HEAD_LIMIT = 16384
REPLY = b"HTTP/1.1 200 control\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class Control:
    """A small HTTP server on the host's loopback; `visits` counts requests that were answered."""

    def __init__(self) -> None:
        self.visits = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0)

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def fileno(self) -> int:
        return self._socket.fileno()

    def serve(self) -> None:
        with self._socket.accept()[0] as client:
            client.settimeout(SECONDS)
            head = b""
            while b"\r\n\r\n" not in head and len(head) < HEAD_LIMIT and (piece := client.recv(4096)):
                head += piece
            if b"\r\n\r\n" in head:
                client.sendall(REPLY)
                self.visits += 1

    def close(self) -> None:
        self._socket.close()
