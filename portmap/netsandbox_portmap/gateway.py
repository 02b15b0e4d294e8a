"""The gateway: one port of the user's localhost at which all sessions are reached by name.

    http://NAME.localhost:7878/     http://PORT.NAME.localhost:7878/     https:// too, if the server speaks TLS

There is no daemon. The first session that publishes binds the port; every later session of the user gets a copy of the
listening sockets from a session that has one (`handover`). All of them accept. The session that accepts a connection
reads its first bytes, and hands it over with these bytes if the name is another session's. So the end of a session,
also by kill -9, closes neither the port nor connections of other sessions.

If another program or user has the port, the sessions share a second one that depends on the user alone, so that their
URLs stay. If that is taken too, or the user chose the port, a session serves its names at the last port of its window.
"""

from __future__ import annotations

import _socket
from errno import EADDRINUSE

from netsandbox.frozen import frozen
from netsandbox.runtime.http.head import HeadCache
from netsandbox_portmap.acceptor import bind_all, listen_all
from netsandbox_portmap.forward import MAX_CONNECTIONS, hang_up
from netsandbox_portmap.handover import HandoverDoor, ListenersRequest, hand_over, session_names
from netsandbox_portmap.name_rewrite import NamedServer
from netsandbox_portmap.publish_addresses import LOCALHOST
from netsandbox_portmap.visit import Visit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.relay import RelayPool
    from netsandbox_portmap.acceptor import Acceptor
    from netsandbox_portmap.contract import Inside
else:
    Protocol = object

MAX_HEADS = 512  # connections whose first bytes are not complete yet, of at most 32 KiB each
MAX_NAMED = 16  # hosts whose repeated heads are remembered, at most 2.5 MB each
ATTEMPTS = 3  # to bind the port or get its sockets, since the session that has them may end at any moment
PAUSE = 0.05


class Directory(Protocol):
    """The published ports (`Publisher`)."""

    by_name_port: int | None
    on_refused: Callable[[int], None]

    def main_port(self) -> int | None:
        """The port that the session's name alone leads to."""

    def targets(self, requested: int | None) -> Sequence[tuple[str, int]]:
        """The addresses inside for a port; empty if it is not published."""

    def speaks_tls(self, requested: int) -> bool: ...

    def learn_tls(self, requested: int, *, speaks: bool) -> None:
        """Remember what a connection has shown."""


@frozen
class GatewayPlan:
    """What one session serves by name."""

    name: str
    port: int
    fallback: int | None  # the port of the window for names; None if it has none
    keep_host: bool = False
    second: int | None = None  # the user's own port, if another user or program has the usual one


class Gateway:
    """One session's part of the gateway. `open` decides the port, now or soon, and sets the directory's."""

    def __init__(self, loop: Loop, plan: GatewayPlan, directory: Directory, inside: Inside, relays: RelayPool) -> None:
        self.loop = loop
        self.plan = plan
        self.directory = directory
        self.inside = inside
        self.relays = relays
        self.openings = HeadCache()  # head of a first request -> `Opening`
        self._visits: set[Visit] = set()
        self._heads = 0
        self._moved = 0
        self._acceptors: list[Acceptor] = []
        self._shared: list[_socket.socket] = []
        self._door: HandoverDoor | None = None
        self._request: ListenersRequest | None = None
        self._ready: Callable[[], None] | None = None
        self._port = plan.port
        self._named: dict[tuple[bytes, bytes, int, int], NamedServer] = {}

    # The port

    def open(self, ready: Callable[[], None]) -> None:
        """*ready* is called once, when `by_name_port` of the directory is decided."""
        self._ready = ready
        try:  # before the port is bound: a session that finds it bound finds us too
            self._door = HandoverDoor(self.loop, self.plan.name, self._listeners, self._receive)
        except OSError:  # no file system for sockets there, or a path that is too long
            return self._fall_back()
        return self._bind(ATTEMPTS)

    def _bind(self, attempts: int) -> None:
        try:
            return self._share(bind_all(LOCALHOST, self._port))
        except OSError as error:
            if error.errno != EADDRINUSE:
                return self._fall_back()

        def answered(found: list[_socket.socket]) -> None:
            self._request = None
            self._got(found, attempts - 1)

        self._request = ListenersRequest(self.loop, self._port, self.plan.name, answered)
        return None

    def _got(self, found: list[_socket.socket], attempts: int) -> None:
        try:
            if found and all(sock.getsockname()[1] == self._port for sock in found):
                return self._share(found)
        except OSError:
            pass
        for sock in found:
            sock.close()
        if self._door is None:
            return self._fall_back()
        if not attempts:
            if self._port != self.plan.second and self.plan.second is not None:
                self._port = self.plan.second
                return self._bind(ATTEMPTS)
            return self._fall_back()
        self.loop.call_later(PAUSE, lambda: self._bind(attempts) if self._door is not None else None)
        return None

    def _share(self, sockets: list[_socket.socket]) -> None:
        self._acceptors = listen_all(self.loop, sockets, self._accept, shared=True)
        self._shared = sockets
        self._decided(self._port)

    def _fall_back(self) -> None:
        port = self.plan.fallback
        if port is not None:
            try:
                self._acceptors = listen_all(self.loop, bind_all(LOCALHOST, port), self._accept)
            except OSError:  # taken since the window was probed
                port = None
        self._decided(port)

    def _decided(self, port: int | None) -> None:
        self.directory.by_name_port = port
        ready, self._ready = self._ready, None
        assert ready is not None
        ready()

    def _listeners(self, port: int) -> list[_socket.socket]:
        return self._shared if port == self._port else []

    # Connections

    @property
    def connections(self) -> int:
        return len(self._visits)

    @property
    def flows(self) -> int:
        """Connections that this session serves itself and that no relay pool counts."""
        return sum(1 for visit in self._visits if visit.is_http)

    @property
    def moved(self) -> int:
        return self._moved + sum(visit.moved for visit in self._visits)

    def close(self) -> None:
        """Connections that are not routed yet go to another session."""
        if self._request is not None:
            self._request.close()
        while self._acceptors:
            self._acceptors.pop().close()
        self._shared = []
        if self._door is not None:
            self._door.close()
            self._door = None
        for visit in tuple(self._visits):
            if not visit.is_routed:
                self._pass_on(visit)
            visit.close()

    def _pass_on(self, visit: Visit) -> None:
        for name in session_names():
            if name != self.plan.name:
                try:
                    visit.hand_over(name, hand_over)
                except OSError:
                    continue
                return

    def routed(self) -> None:
        """Count one open head less."""
        self._heads -= 1
        if self._heads == MAX_HEADS - 1:
            for acceptor in self._acceptors:
                acceptor.resume()

    def forget(self, visit: Visit) -> None:
        if visit in self._visits:
            self._moved += visit.moved
            self._visits.discard(visit)

    def named(self, host: bytes, peer: bytes, port: int) -> NamedServer:
        key = (host.lower(), peer, port, self.directory.main_port() or port)
        found = self._named.get(key)
        if found is None:
            if len(self._named) >= MAX_NAMED:
                self._named.clear()
            found = self._named[key] = NamedServer(*key[:2], key[2:], lambda port: bool(self.directory.targets(port)))
        return found

    def _accept(self, client: _socket.socket) -> None:
        self._receive(client, b"")
        if self._heads >= MAX_HEADS:  # newcomers wait in the kernel's queue, or for another session
            for acceptor in self._acceptors:
                acceptor.stop()

    def _receive(self, client: _socket.socket, data: bytes) -> None:
        if len(self._visits) >= MAX_CONNECTIONS:
            hang_up(client)
            return
        client.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
        visit = Visit(self, client)
        self._visits.add(visit)
        self._heads += 1
        try:
            visit.start(data)
        except OSError:  # the loop cannot watch another descriptor: close this connection, keep the door
            visit.close()
