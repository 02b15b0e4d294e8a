"""HTTP/2 over TLS with the h2 package: a server that remembers requests, and a client without any politeness."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import h2.config
import h2.connection
import h2.events

from tests.rig.certificates import Leaf
from tests.rig.threaded_server import ThreadedServer

Headers = list[tuple[str, str]]


class H2Canary(ThreadedServer):
    """`requests` are the heads that arrived. /big/N answers N bytes; gRPC gets its trailers, which show credentials."""

    def __init__(self, leaf: Leaf) -> None:
        self._context = leaf.context()
        self._context.set_alpn_protocols(["h2"])
        self.requests: list[dict[str, str]] = []
        self.sent = 0
        super().__init__(self._speak)

    def _speak(self, plain: socket.socket) -> None:
        with self._context.wrap_socket(plain, server_side=True) as sock:
            conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
            conn.initiate_connection()
            sock.sendall(conn.data_to_send())
            waiting: dict[int, int] = {}
            while data := sock.recv(65536):
                for event in conn.receive_data(data):
                    self._handle(conn, event, waiting)
                self._send(conn, waiting)
                sock.sendall(conn.data_to_send())

    def _handle(self, conn: Any, event: Any, waiting: dict[int, int]) -> None:
        if isinstance(event, h2.events.RequestReceived):
            head = dict(event.headers)
            self.requests.append(head)
            if head.get("content-type", "").startswith("application/grpc"):
                conn.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc")])
                conn.send_data(event.stream_id, b"\0\0\0\0\2ok")
                shown = [("grpc-message", head["authorization"])] if "authorization" in head else []
                conn.send_headers(event.stream_id, [("grpc-status", "0"), *shown], end_stream=True)
                return
            path = head[":path"]
            waiting[event.stream_id] = int(path.rpartition("/")[2]) if path.startswith("/ok/big") else 5
            conn.send_headers(event.stream_id, [(":status", "200")])
        elif isinstance(event, h2.events.DataReceived):
            conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def _send(self, conn: Any, waiting: dict[int, int]) -> None:
        for stream in list(waiting):
            while waiting[stream]:
                size = min(waiting[stream], conn.local_flow_control_window(stream), conn.max_outbound_frame_size)
                if size <= 0:
                    break
                conn.send_data(stream, b"x" * size)
                waiting[stream] -= size
                self.sent += size
            else:
                conn.end_stream(stream)
                del waiting[stream]


@contextlib.contextmanager
def h2_canary(leaf: Leaf) -> Iterator[H2Canary]:
    server = H2Canary(leaf)
    try:
        yield server
    finally:
        server.close()


class H2Client:
    """Sends any header, also those that HTTP forbids."""

    def __init__(self, sock: ssl.SSLSocket, *, window: int = 1 << 20) -> None:
        config = h2.config.H2Configuration(
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self.sock = sock
        self.conn = h2.connection.H2Connection(config)
        self.conn.local_settings.initial_window_size = window
        self.conn.initiate_connection()
        self.sock.sendall(self.conn.data_to_send())

    def request(self, headers: Headers, *, body: bytes | None = None, end: bool = True) -> int:
        stream: int = self.conn.get_next_available_stream_id()
        self.conn.send_headers(stream, headers, end_stream=body is None and end)
        if body is not None:
            self.conn.send_data(stream, body, end_stream=end)
        self.sock.sendall(self.conn.data_to_send())
        return stream

    def answer(self, stream: int) -> tuple[dict[str, str], bytes]:
        """Headers and trailers together, and the body; a reset is a header `reset`."""
        headers: dict[str, str] = {}
        body = b""
        while data := self.sock.recv(65536):
            for event in self.conn.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
                    headers.update(event.headers)
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data
                    self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded) and event.stream_id == stream:
                    return headers, body
                elif isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated):
                    return {**headers, "reset": "yes"}, body
            with contextlib.suppress(OSError):  # it may be closed
                self.sock.sendall(self.conn.data_to_send())
        return {**headers, "reset": "closed"}, body
