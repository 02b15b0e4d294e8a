"""An index on loopback that clients reach by name through a proxy, so that no name has to exist."""

from __future__ import annotations

import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.rig.certificates import Leaf


class PackageIndex:
    """Serves PAGES by HTTPS under every name, through an HTTP proxy; remembers who was asked for what."""

    def __init__(self, leaf: Leaf, pages: dict[str, tuple[int, str, bytes]]) -> None:
        self.tunnels: list[str] = []  # targets of CONNECT, and URLs without TLS
        self.requests: list[tuple[str, str | None]] = []  # path, and what was said to be authorised
        context = leaf.context()
        index = self

        class Pages(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests.append((self.path, self.headers["Authorization"]))
                status, kind, body = pages.get(self.path, (404, "text/plain", b""))
                self.send_response(status)
                self.send_header("Location" if 300 <= status < 400 else "Content-Type", kind)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Tunnel(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # without TLS, which nobody should ask for
                index.tunnels.append(self.path)
                self.send_response(200)
                self.end_headers()

            def do_CONNECT(self) -> None:
                index.tunnels.append(self.path)
                self.connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                try:
                    with context.wrap_socket(self.connection, server_side=True) as inside:
                        Pages(inside, self.client_address, server)
                except (OSError, ssl.SSLError):
                    pass
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
                if isinstance(request, socket.socket):  # the tunnel may have taken it over
                    request.close()

        self._server = server = Server(("127.0.0.1", 0), Tunnel)
        self.proxy = f"http://127.0.0.1:{server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
