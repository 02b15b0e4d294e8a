"""Reaches a session by its name: `http://NAME.localhost:P/` and `http://PORT.NAME.localhost:P/` on the host's loopback.

The first request head of a connection decides where it goes. Its bytes, and all that follow in both directions, are
relayed unchanged, so WebSocket, server-sent events and keep-alive need no special code. A browser never uses one
connection for two names, so the first head is enough (RFC 9112, 9.3).

Rules: a foreign Host gets 421 and reaches nothing (INV-1). A head must be complete within ten seconds. The number of
open heads is bounded. Our own responses are one plain sentence that states what to do.
"""

from __future__ import annotations

import _socket

from netsandbox.runtime.loop import IN
from netsandbox_portmap.acceptor import bind_all, listen_all
from netsandbox_portmap.forward import MAX_CONNECTIONS, REFUSED, InsideDial, hang_up
from netsandbox_portmap.publish_addresses import LOCALHOST
from netsandbox_portmap.request_host import HeadError, RequestHost, route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox.runtime.relay import PooledRelay, RelayPool
    from netsandbox_portmap.acceptor import Acceptor
    from netsandbox_portmap.contract import Inside
else:
    Protocol = object

MAX_HEADS = 256  # connections that are not routed yet
HEAD_DEADLINE = 10.0
DRAIN_DEADLINE = 5.0  # seconds after our response, so that the client reads it before it gets a reset
MAX_DRAIN_BYTES = 1 << 20
CHUNK = 16 * 1024
PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class Directory(Protocol):
    """The published ports (`Publisher`)."""

    by_name_port: int | None
    on_refused: Callable[[int], None]

    def targets(self, requested: int | None) -> Sequence[tuple[str, int]]:
        """The addresses inside for a port, or for the main port if None; empty if it is not published."""


class ByName:
    """Listens at once. If the port is taken, it sets the directory's `by_name_port` to None."""

    def __init__(
        self,
        loop: Loop,
        port: int,
        name: str,
        directory: Directory,
        inside: Inside,
        relays: RelayPool,
    ) -> None:
        self.loop = loop
        self.port = port
        self.name = name
        self.directory = directory
        self.inside = inside
        self.relays = relays
        self._visits: set[Visit] = set()
        self._heads = 0
        self._acceptors: list[Acceptor] = []
        try:
            self._acceptors = listen_all(loop, bind_all(LOCALHOST, port), self._receive)
        except OSError:  # taken since the window was probed
            directory.by_name_port = None

    def close(self) -> None:
        while self._acceptors:
            self._acceptors.pop().close()
        for visit in tuple(self._visits):
            visit.close()

    @property
    def connections(self) -> int:
        return len(self._visits)

    def routed(self) -> None:
        """Count one open head less."""
        self._heads -= 1

    def forget(self, visit: Visit) -> None:
        self._visits.discard(visit)

    def _receive(self, client: _socket.socket) -> None:
        if len(self._visits) >= MAX_CONNECTIONS:
            hang_up(client)
            return
        visit = Visit(self, client)
        self._visits.add(visit)
        self._heads += 1
        try:
            if self._heads > MAX_HEADS:
                visit.answer(503, "Too many connections at once. Close some and try again.")
            else:
                visit.start()
        except OSError:  # the loop cannot watch another descriptor: close this connection, keep the door
            visit.close()


class Visit:
    """One connection: its head, then the relay or our response. `close` acts once and closes everything."""

    __slots__ = (
        "_client",
        "_door",
        "_drained",
        "_ended",
        "_head",
        "_reach",
        "_relay",
        "_routed",
        "_timer",
        "_watched",
    )

    def __init__(self, door: ByName, client: _socket.socket) -> None:
        self._door = door
        self._client: _socket.socket | None = client
        self._head = RequestHost()
        self._reach: InsideDial | None = None
        self._relay: PooledRelay | None = None
        self._timer: Timer | None = None
        self._watched = False
        self._routed = False
        self._ended = False
        self._drained = 0

    def start(self) -> None:
        self._timer = self._door.loop.call_later(HEAD_DEADLINE, self._late)
        self._watch(self._on_head)

    def close(self) -> None:
        self._stop_waiting()
        reach, self._reach = self._reach, None
        if reach is not None:
            reach.close()
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()
        client, self._client = self._client, None
        if client is not None:
            hang_up(client)
        self._leave_heads()
        self._door.forget(self)

    def answer(self, status: int, text: str) -> None:
        """Send the response, half-close, and read until the client has closed (RFC 9112, 9.6)."""
        self._stop_waiting()
        self._leave_heads()
        client = self._client
        assert client is not None
        try:
            client.send(response(status, text, bodiless=self._head.method == b"HEAD"))  # fits an empty buffer
            client.shutdown(_socket.SHUT_WR)
        except OSError:
            return self.close()
        self._timer = self._door.loop.call_later(DRAIN_DEADLINE, self.close)
        return self._watch(self._on_drain)

    def _on_head(self, events: int) -> None:
        data = self._read()
        if data is None:
            return None
        if not data:
            return self.close()
        try:
            host = self._head.feed(data)
        except HeadError as error:
            return self.answer(error.status, error.text)
        return None if host is None else self._send_on(host)

    def _send_on(self, host: str) -> None:
        self._stop_waiting()
        door = self._door
        where = route(host, door.name)
        if where is None:
            return self.answer(
                421,
                f"This is the session {door.name}: open http://{door.name}.localhost:{door.port}/ instead. "
                "`netsandbox ports` lists every address.",
            )
        targets = door.directory.targets(where[1])
        if not targets:
            return self._nothing_there(where[1])
        self._reach = InsideDial(
            door.loop, door.inside, targets, lambda sock, why: self._reached(sock, why, targets[0])
        )
        return self._reach.start()

    def _reached(self, server: _socket.socket | None, reason: str, target: tuple[str, int]) -> None:
        self._reach = None
        client = self._client
        assert client is not None
        if server is None:
            if reason == REFUSED:
                self._door.directory.on_refused(target[1])
            self._nothing_there(target[1])
            return
        self._client = None
        self._leave_heads()
        relay = self._door.relays.join(client, server, bytes(self._head.held), self._over)
        if not self._ended:  # unless it has ended already
            self._relay = relay

    def _over(self, up: int, down: int) -> None:
        self._ended = True
        self._relay = None
        self._door.forget(self)

    def _nothing_there(self, port: int | None) -> None:
        what = "Nothing listens" if port is None else f"Nothing answers on port {port}"
        self.answer(
            502, f"{what} in the session {self._door.name}. Start the server and reload; see `netsandbox ports`."
        )

    def _on_drain(self, events: int) -> None:
        data = self._read()
        if data is None:
            return
        self._drained += len(data)
        if not data or self._drained > MAX_DRAIN_BYTES:
            self.close()

    def _late(self) -> None:
        if self._head.held:
            self.answer(408, "The request was not complete within ten seconds. Send it again.")
        else:  # a spare connection of a browser
            self.close()

    def _read(self) -> bytes | None:
        """b"" at the end of the stream or after a reset; None if there is no data yet."""
        client = self._client
        assert client is not None
        try:
            return client.recv(CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _watch(self, handler: Callable[[int], None]) -> None:
        assert self._client is not None
        self._door.loop.watch(self._client.fileno(), IN, handler)
        self._watched = True

    def _stop_waiting(self) -> None:
        if self._watched and self._client is not None:
            self._door.loop.unwatch(self._client.fileno())
        self._watched = False
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _leave_heads(self) -> None:
        if not self._routed:
            self._routed = True
            self._door.routed()


def response(status: int, text: str, *, bodiless: bool = False) -> bytes:
    body = f"netsandbox: {text}\n".encode("ascii", "backslashreplace")
    head = (
        f"HTTP/1.1 {status} {PHRASES[status]}\r\nContent-Type: text/plain; charset=us-ascii\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + (b"" if bodiless else body)
