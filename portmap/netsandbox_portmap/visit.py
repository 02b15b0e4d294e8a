"""One connection to the gateway: its first bytes, then the session's server, another session, or our response.

Rules: a foreign Host gets 421 and reaches nothing (INV-1). The first bytes must be complete within ten seconds. Our own
responses are one plain sentence that states what to do; they name sessions only to clients of the same user that ask
for a name under `.localhost`, whose pages no other site can read.
"""

from __future__ import annotations

import _socket
import os

from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.plain_response import plain_response
from netsandbox.runtime.loop import IN
from netsandbox_portmap.forward import REFUSED, InsideDial, hang_up
from netsandbox_portmap.handover import hand_over, live_names
from netsandbox_portmap.named_http import HEAD_DEADLINE, NamedHttp
from netsandbox_portmap.peer_user import peer_user
from netsandbox_portmap.request_host import OpeningReader, explain, split_name
from netsandbox_portmap.tls_answer import PROBE, UNRECOGNIZED_NAME, FirstAnswer, is_tls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Timer
    from netsandbox_portmap.contract import Closeable
    from netsandbox_portmap.gateway import Gateway
    from netsandbox_portmap.request_host import Opening

DRAIN_DEADLINE = 5.0  # seconds after our response, so that the client reads it before it gets a reset
PROBE_DEADLINE = 2.0
ANSWER_DEADLINE = 30.0
MAX_DRAIN_BYTES = 1 << 20
CHUNK = 16 * 1024
MAX_LISTED = 20  # names in a response


class Visit:
    """`close` acts once and closes everything. `_stage` is what owns the time between the head and the end."""

    __slots__ = (
        "_client",
        "_door",
        "_drained",
        "_ended",
        "_moved",
        "_opening",
        "_port",
        "_reader",
        "_server",
        "_stage",
        "_timer",
        "_watched",
        "is_routed",
    )

    def __init__(self, door: Gateway, client: _socket.socket) -> None:
        self._door = door
        self._client: _socket.socket | None = client
        self._server: _socket.socket | None = None
        self._reader = OpeningReader()
        self._opening: Opening | None = None
        self._port = 0
        self._stage: Closeable | None = None
        self._timer: Timer | None = None
        self._watched = False
        self._drained = 0
        self._moved = 0
        self._ended = False
        self.is_routed = False

    @property
    def is_http(self) -> bool:
        return isinstance(self._stage, NamedHttp)

    @property
    def moved(self) -> int:
        return self._moved + (self._stage.moved if isinstance(self._stage, NamedHttp) else 0)

    def start(self, data: bytes) -> None:
        """*data* was read by another session."""
        first = data or self._read()  # on loopback the request is mostly there
        if first is None:
            return self._await_more()
        return self._feed(first) if first else self.close()

    def close(self) -> None:
        self._stop_waiting()
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.close()
        for sock in (self._client, self._server):
            if sock is not None:
                hang_up(sock)
        self._client = self._server = None
        self._leave_heads()
        self._door.forget(self)

    def hand_over(self, name: str, give: Callable[[str, _socket.socket, bytes], None]) -> None:
        """Give the connection to another session, as it came. OSError: it did not take it."""
        assert self._client is not None
        give(name, self._client, self._reader.held)
        self._stop_waiting()
        self._client.close()  # our copy; a reset would reset the other session's too
        self._client = None
        self.close()

    # The first bytes

    def _on_head(self, events: int) -> None:
        data = self._read()
        if data is None:
            return None
        return self._feed(data) if data else self.close()

    def _await_more(self) -> None:
        if not self._watched:
            self._timer = self._door.loop.call_later(HEAD_DEADLINE, self._late)
            self._watch(self._on_head)

    def _feed(self, data: bytes) -> None:
        known = self._door.openings.get(data) if not self._reader.held else None
        if known is not None:
            self._reader.held = data
            return self._route(known)
        try:
            opening = self._reader.feed(data)
        except ProtocolError as error:
            return self._refuse(error.status, explain(error))
        if opening is None:
            return self._await_more()
        if opening.head is not None and not opening.rest:
            self._door.openings.add(opening.head.raw, opening)
        return self._route(opening)

    def _route(self, opening: Opening) -> None:
        self._stop_waiting()
        self._opening = opening
        where = split_name(opening.host)
        if where is None:
            return self._refuse(421, "This door is for names under .localhost. `netsandbox ports` lists every address.")
        name, port = where
        if name != self._door.plan.name:
            return self._send_elsewhere(name)
        self._leave_heads()
        directory = self._door.directory
        targets = directory.targets(port)
        if not targets:
            return self._nothing_there(port)
        self._port = port or directory.main_port() or 0
        if opening.head is not None and directory.speaks_tls(self._port):
            return self._redirect()
        self._stage = InsideDial(
            self._door.loop, self._door.inside, targets, lambda sock, why: self._reached(sock, why, targets[0][1])
        )
        return self._stage.start()

    def _send_elsewhere(self, name: str) -> None:
        try:
            self.hand_over(name, hand_over)
        except (FileNotFoundError, ConnectionRefusedError):
            self._unknown(name)
        except OSError:
            self._refuse(503, f"The session {name} takes no connections now. Reload; see `netsandbox ps`.")

    def _unknown(self, name: str) -> None:
        """Names of sessions are for their own user: others of the machine reach this port too."""
        names = live_names() if self._is_ours() else []
        there = f"There are: {', '.join(names[:MAX_LISTED])}. " if names else ""
        what = f"No session is called {name}" if name else "The name of a session is missing"
        self._refuse(
            404,
            f"{what}. {there}Open http://NAME.localhost:{self._door.directory.by_name_port}/; see `netsandbox ports`.",
        )

    def _is_ours(self) -> bool:
        if self._opening is None or self._opening.head is None or self._client is None:
            return False
        return peer_user(self._client) in (os.geteuid(), 0)  # root sees them anyway

    # The session's own server

    def _reached(self, server: _socket.socket | None, reason: str, inside: int) -> None:
        self._stage = None
        if server is None:
            if reason == REFUSED:
                self._door.directory.on_refused(inside)
            return self._nothing_there(self._port)
        self._server = server
        opening, client = self._opening, self._client
        assert opening is not None
        assert client is not None
        if opening.head is None:
            self._stage = FirstAnswer(self._door.loop, server, self._reader.held, self._answered, ANSWER_DEADLINE)
            return self._stage.start()
        if self._door.plan.keep_host:
            return self._relay(self._reader.held, b"")
        try:
            peer = client.getpeername()[0].encode("ascii")
        except OSError:  # it has left
            return self.close()
        named = self._door.named(opening.head.host or b"", peer, self._port)
        stage = NamedHttp(self._door.loop, (client, server), named, self._door.relays.pipes, self)
        self._stage = stage
        return stage.begin(opening.head, opening.rest)

    def _answered(self, first: bytes, unsent: bytes) -> None:
        """A server has answered a ClientHello."""
        if first:
            self._learn(speaks=is_tls(first))
        self._relay(unsent, first)

    def _learn(self, *, speaks: bool) -> None:
        self._door.directory.learn_tls(self._port, speaks=speaks)

    def _relay(self, up: bytes, down: bytes) -> None:
        client, server = self._client, self._server
        assert client is not None
        assert server is not None
        self._client = self._server = self._stage = None
        relay = self._door.relays.join(client, server, up, self._over, down)
        if not self._ended:  # it may have ended already
            self._stage = relay

    def _over(self, up: int, down: int) -> None:
        self._ended = True
        self._stage = None
        self._door.forget(self)

    # What NamedHttp reports

    def upgraded(self, up: bytes, down: bytes) -> None:
        self._moved = self.moved
        self._relay(up, down)

    def finished(self) -> None:
        client = self._client
        assert client is not None
        if self._read() is not None:  # bytes that nobody reads would reset the connection
            return self._send_last(b"")
        self._drop_server()
        self._client = None
        client.close()
        return self.close()

    def refused(self, error: ProtocolError) -> None:
        self._refuse(error.status, explain(error))

    def failed(self) -> None:
        self._moved = self.moved
        self._stage = None
        self.close()

    def cut(self) -> None:
        """The server closed instead of a response. Servers that speak TLS do that, so this one gets a ClientHello."""
        self._drop_server()
        targets = self._door.directory.targets(self._port)
        self._stage = InsideDial(self._door.loop, self._door.inside, targets, lambda sock, why: self._probe(sock))
        self._stage.start()

    def _probe(self, server: _socket.socket | None) -> None:
        self._stage = None
        if server is None:
            return self._nothing_there(self._port)
        self._server = server
        self._stage = FirstAnswer(self._door.loop, server, PROBE, self._probed, PROBE_DEADLINE)
        return self._stage.start()

    def _probed(self, first: bytes, unsent: bytes) -> None:
        self._stage = None
        if not is_tls(first):
            return self._refuse(502, f"The server on port {self._port} closed the connection instead of a response.")
        self._learn(speaks=True)
        return self._redirect()

    # Our responses

    def answer(self, status: int, text: str, *headers: str) -> None:
        head = self._opening.head if self._opening is not None else None
        self._send_last(plain_response(status, text, *headers, bodiless=head is not None and head.method == b"HEAD"))

    def _refuse(self, status: int, text: str) -> None:
        if self._reader.is_tls:
            self._send_last(UNRECOGNIZED_NAME)
        else:
            self.answer(status, text)

    def _send_last(self, data: bytes) -> None:
        """Send *data*, half-close, and read until the client has closed (RFC 9112, 9.6)."""
        self._stop_waiting()
        self._leave_heads()
        self._drop_server()
        client = self._client
        assert client is not None
        try:
            if data:
                client.send(data)  # fits an empty buffer
            client.shutdown(_socket.SHUT_WR)
        except OSError:
            return self.close()
        self._timer = self._door.loop.call_later(DRAIN_DEADLINE, self.close)
        return self._watch(self._on_drain)

    def _redirect(self) -> None:
        head = self._opening.head if self._opening is not None else None
        assert head is not None
        path = head.target if head.target.startswith(b"/") else b"/"
        url = f"https://{(head.host or b'').decode('ascii')}{path.decode('ascii')}"
        self.answer(307, "The server speaks TLS. Open this URL with https.", f"Location: {url}")

    def _nothing_there(self, port: int | None) -> None:
        what = "Nothing listens" if port is None else f"Nothing answers on port {port}"
        self._refuse(
            502, f"{what} in the session {self._door.plan.name}. Start the server and reload; see `netsandbox ports`."
        )

    def _on_drain(self, events: int) -> None:
        data = self._read()
        if data is None:
            return
        self._drained += len(data)
        if not data or self._drained > MAX_DRAIN_BYTES:
            self.close()

    def _late(self) -> None:
        if self._reader.held:
            self._refuse(408, "The request was not complete within ten seconds. Send it again.")
        else:  # a spare connection of a browser
            self.close()

    # The sockets

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

    def _drop_server(self) -> None:
        self._moved = self.moved
        self._stage = None
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _leave_heads(self) -> None:
        if not self.is_routed:
            self.is_routed = True
            self._door.routed()
