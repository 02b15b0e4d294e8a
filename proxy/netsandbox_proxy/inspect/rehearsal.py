"""One exchange inside the engine before it is sealed: what it imports late, it imports now, since it cannot later."""

from __future__ import annotations

import _socket
from typing import Any

from OpenSSL import SSL

from netsandbox_proxy.inspect.tls_contexts import HTTP1, TlsContexts
from netsandbox_proxy.inspect.worker import Worker

HOST = "rehearsal.invalid"
ROUNDS = 200
LATE = (
    "ascii",
    "idna",
    "latin_1",
    "punycode",
    "unicode_escape",
    "utf_8",
)  # of `encodings`, besides what an exchange needs
REQUESTS = (
    b"GET /allowed HTTP/1.1\r\nHost: rehearsal.invalid\r\n\r\n"
    b"POST /refused HTTP/1.1\r\nHost: rehearsal.invalid\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
)
RESPONSE = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


class Peer:
    """One end of TLS over a socket: the client, or the server."""

    def __init__(self, sock: _socket.socket, tls: SSL.Connection, to_send: bytes) -> None:
        sock.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
        self.sock = sock
        self._tls = tls
        self._to_send = to_send
        self.received = b""

    def step(self, *, sends: bool) -> None:
        try:
            self._tls.bio_write(self.sock.recv(65536))
        except (BlockingIOError, SSL.Error):
            pass
        try:
            self._tls.do_handshake()
            if sends and self._to_send:
                self._tls.sendall(self._to_send)
                self._to_send = b""
            self.received += self._tls.recv(65536)
        except SSL.Error:
            pass
        try:
            self.sock.sendall(self._tls.bio_read(65536))
        except (SSL.Error, BlockingIOError):
            pass


def rehearse(contexts: TlsContexts) -> None:
    """*contexts* trust the session's own CA, so that they can be both the client and the server."""
    for name in LATE:
        __import__(f"encodings.{name}")
    channel, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    worker = _RehearsingWorker(channel, contexts, {"idle": 60})
    client_end, client_sock = _socket.socketpair()
    server_end, server_sock = _socket.socketpair()
    for end in (client_end, server_end):
        end.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
    client = Peer(client_sock, contexts.to_server(HOST, HTTP1), REQUESTS)
    server = Peer(server_sock, contexts.to_client(HOST, HTTP1), RESPONSE)
    opened = {"kind": "open", "id": 1, "host": HOST, "port": 443, "hello": ""}
    worker.open(opened, [client_end.detach(), server_end.detach()])
    try:
        _exchange(worker, client, server)
    finally:
        worker.finish()
        for sock in (channel, other, client_sock, server_sock):
            sock.close()


def _exchange(worker: _RehearsingWorker, client: Peer, server: Peer) -> None:
    for _ in range(ROUNDS):
        client.step(sends=True)
        server.step(sends=b"\r\n\r\n" in server.received)
        worker.turn()
        if b"x-netsandbox-reason: rehearsal" in client.received:
            return
    raise RuntimeError(f"the rehearsal failed: {worker.told}")


class _RehearsingWorker(Worker):
    """Decides itself: what is called allowed is."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.told: list[dict[str, Any]] = []

    def tell(self, message: dict[str, Any]) -> None:
        self.told.append(message)
        if message["kind"] == "ask":
            allow = message["target"] == "/allowed"
            reply = {"allow": allow, "status": 403, "reason": "rehearsal", "text": "no"}
            self.loop.call_later(0, lambda: self._connections[1].judged(message["n"], reply))

    def turn(self) -> None:
        """One round of the loop."""
        self.loop.call_later(0.001, self.loop.stop)
        self.loop.run()

    def finish(self) -> None:
        for connection in tuple(self._connections.values()):
            connection.abort()
        self.loop.close()
