"""What stands behind a session's name: a book of what is published, and pages."""

from __future__ import annotations

import http.server
import json
import time
from typing import Any
from urllib.parse import unquote

NAME = "shop.localhost"


class Book:
    """The directory: asked port -> where it is inside."""

    def __init__(self) -> None:
        self.by_name_port: int | None = None
        self.entries: dict[int | None, list[tuple[str, int]]] = {}
        self.tls: set[int] = set()
        self.refused: list[int] = []
        self.on_refused = self.refused.append

    def publish(self, asked: int, port: int) -> None:
        """*asked* is the session's main port from now on."""
        self.entries[None] = self.entries[asked] = [("127.0.0.1", port)]

    def main_port(self) -> int | None:
        main = self.entries.get(None)
        return next((port for port, place in self.entries.items() if port is not None and place is main), None)

    def targets(self, asked: int | None) -> list[tuple[str, int]]:
        return self.entries.get(asked, [])

    def speaks_tls(self, asked: int) -> bool:
        return asked in self.tls

    def learn_tls(self, asked: int, *, speaks: bool) -> None:
        (self.tls.add if speaks else self.tls.discard)(asked)


class Pages(http.server.BaseHTTPRequestHandler):
    """Keep-alive, chunks, an event stream, and what the request said."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/events":
            return self._events()
        if self.path == "/chunks":
            return self._chunks()
        if self.path == "/headers":
            return self._say(json.dumps({name.lower(): value for name, value in self.headers.items()}).encode())
        if self.path.startswith("/echo?"):  # a response with the headers of the query
            return self._say(b"echo", *self.path[6:].split("&"))
        return self._say(json.dumps({"host": self.headers["Host"], "path": self.path}).encode())

    def do_HEAD(self) -> None:
        self._say(b"12345", body=False)

    def do_POST(self) -> None:
        self._say(self.rfile.read(int(self.headers["Content-Length"])))

    def _say(self, data: bytes, *headers: str, body: bool = True) -> None:
        self.send_response(200)
        for header in headers:
            self.send_header(*unquote(header).split(": ", 1))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _chunks(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (b"one", b"two", b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def _events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(3):
            self.wfile.write(b"data: %d\n\n" % number)
            self.wfile.flush()
            time.sleep(0.05)

    def log_message(self, *args: Any) -> None:
        """Quiet."""


def ask(rig: Any, speak: Any, port: int, data: bytes, address: str = "127.0.0.1") -> bytes:
    client = rig.client(port, address)
    client.sendall(data)
    answer: bytes = speak.read_all(client)
    return answer
