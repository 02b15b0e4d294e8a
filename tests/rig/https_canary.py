"""HTTPS and HTTP servers on loopback that remember every request: what a denied request must never become."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.rig.certificates import Leaf

# From method, target, headers and body to status, headers and body.
Respond = Callable[[str, str, dict[str, str], bytes], tuple[int, dict[str, str], bytes]]
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


class HttpsCanary(ThreadingHTTPServer):
    """`requests` are the request lines that arrived, `heads` their headers, `bodies` what followed."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._context = context
        self.port = self.server_address[1]
        self.requests: list[str] = []
        self.heads: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.respond: Respond | None = None  # instead of the usual answers

    def finish_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """In the thread of the connection, so that a client that sends no hello stops nobody else."""
        if self._context is None:
            _Handler(request, client_address, self)
            return
        with contextlib.suppress(OSError):
            wrapped = self._context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
            with wrapped as secured:  # a handshake that fails leaves nothing open
                secured.do_handshake()
                _Handler(secured, client_address, self)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves is nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpsCanary

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        self.server.heads.append({name.lower(): value for name, value in self.headers.items()})
        if self.headers.get("upgrade", "").lower() == "websocket":
            return self._websocket()
        self.server.bodies.append(self._body())
        if self.server.respond is not None:
            return self._respond(self.server.respond)
        if self.path == "/events":
            return self._events()
        if self.path.startswith("/echo"):
            return self._echo()
        data = f"answer {self.path}\n".encode()
        if "/big/" in self.path:
            data = b"x" * int(self.path.rpartition("/")[2])
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        if "/close/" in self.path:
            self.send_header("connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        return None

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = _answer

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("content-length", "0")))

    def _respond(self, respond: Respond) -> None:
        status, headers, body = respond(self.command, self.path, self.server.heads[-1], self.server.bodies[-1])
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _echo(self) -> None:
        """Show the whole head: in a header, and in a body that comes byte by byte. `/echo/gzip` says that it is
        compressed, `/echo/206` that it is a part, `/echo/broken` quotes the head in what is no header, `/echo/name` in
        a name that no header has."""
        shown = f"{self.path} {self.headers.get('authorization', '')} {self.headers.get('x-api-key', '')}"
        if self.path.startswith(("/echo/broken", "/echo/name")):
            line = shown if self.path.startswith("/echo/broken") else f"x/{shown.rsplit(maxsplit=1)[-1]}: 1"
            self.wfile.write(f"HTTP/1.1 200 OK\r\n{line}\r\n\r\n".encode())
            self.close_connection = True
            return
        self.send_response(206 if self.path.startswith("/echo/206") else 200)
        self.send_header("x-echo", shown)
        self.send_header("transfer-encoding", "chunked")
        if self.path.startswith("/echo/gzip"):
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        for byte in f"{shown}\n".encode():
            self.wfile.write(b"1\r\n%c\r\n" % byte)
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _events(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for number in range(3):
            self.wfile.write(f"data: {number}\n\n".encode())
            self.wfile.flush()

    def _websocket(self) -> None:
        key = self.headers["sec-websocket-key"].encode()
        accept = b64encode(hashlib.sha1(key + GUID).digest()).decode()
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept.encode() + b"\r\n\r\n"
        )
        self.wfile.flush()
        frame = self.rfile.read(2)
        mask = self.rfile.read(4)
        masked = self.rfile.read(frame[1] & 0x7F)
        text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))
        self.wfile.write(bytes((0x81, len(text))) + text)
        self.close_connection = True


@contextlib.contextmanager
def https_canary(leaf: Leaf | None) -> Iterator[HttpsCanary]:
    """A server with this certificate; without one it speaks plain HTTP."""
    server = HttpsCanary(None if leaf is None else leaf.context())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
