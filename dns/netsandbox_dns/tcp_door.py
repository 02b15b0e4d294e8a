"""The TCP door of the resolver: queries with two bytes of length before each (RFC 7766), several to a connection.

Rules kept here:

1. A connection that has not completed a query for `DEADLINE` seconds is closed, even if single bytes keep arriving.
2. At most `MAX_CONNECTIONS` at once; more are accepted and closed, so the backlog never hides them.
3. A client that does not read its answers is not read from: at most `MAX_UNSENT` bytes wait for it.
"""

from __future__ import annotations

from netsandbox.runtime.listener import Listener
from netsandbox.runtime.loop import IN, OUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox_dns.resolver import Resolver

MAX_CONNECTIONS = 64
DEADLINE = 10.0
MAX_UNSENT = 65536
_CHUNK = 16384


class TcpDoor:
    """Accepts on *listener*, which it owns from now on."""

    def __init__(self, loop: Loop, listener: Socket, resolver: Resolver) -> None:
        self.loop = loop
        self.resolver = resolver
        self.connections: set[Connection] = set()
        self._listener = Listener(loop, listener, self._receive)

    def close(self) -> None:
        for connection in list(self.connections):
            connection.close()
        self._listener.close()

    def _receive(self, sock: Socket, _source: object) -> None:
        if len(self.connections) >= MAX_CONNECTIONS:
            sock.close()
        else:
            self.connections.add(Connection(self, sock))


class Connection:
    """One client: reads bytes until a query is complete, sends replies in the order in which they are ready."""

    __slots__ = ("_door", "_events", "_fd", "_sock", "_timer", "_unread", "_unsent")

    def __init__(self, door: TcpDoor, sock: Socket) -> None:
        self._door = door
        self._sock = sock
        self._fd = sock.fileno()
        self._unread = bytearray()
        self._unsent = bytearray()
        self._events = IN
        self._timer: Timer = door.loop.call_later(DEADLINE, self.close)
        door.loop.watch(self._fd, self._events, self._ready)

    def close(self) -> None:
        if self._fd < 0:
            return
        self._timer.cancel()
        self._door.loop.unwatch(self._fd)
        self._fd = -1
        self._sock.close()
        self._door.connections.discard(self)

    def _ready(self, events: int) -> None:
        try:
            if events & OUT:
                self._push()
            if events & ~OUT and len(self._unsent) < MAX_UNSENT:
                data = self._sock.recv(_CHUNK)
                if not data:
                    self.close()
                    return
                self._unread += data
            self._serve()
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def _serve(self) -> None:
        """Answer the complete queries in the buffer while the client takes the replies."""
        answered = False
        while self._fd >= 0 and len(self._unsent) < MAX_UNSENT and len(self._unread) >= 2:
            end = 2 + int.from_bytes(self._unread[:2], "big")
            if len(self._unread) < end:
                break
            data = bytes(self._unread[2:end])
            del self._unread[:end]
            answered = True
            reply = self._door.resolver.answer(data, "tcp", self, None, _respond)
            if reply is not None:
                self._unsent += len(reply).to_bytes(2, "big") + reply
        if answered and self._fd >= 0:
            self._timer.cancel()
            self._timer = self._door.loop.call_later(DEADLINE, self.close)
        self._push()

    def send(self, reply: bytes) -> None:
        if self._fd >= 0:
            self._unsent += len(reply).to_bytes(2, "big") + reply
            self._push()

    def _push(self) -> None:
        if self._fd < 0:
            return
        try:
            if self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        wanted = (OUT if self._unsent else 0) | (IN if len(self._unsent) < MAX_UNSENT else 0)
        if wanted != self._events:
            self._events = wanted
            self._door.loop.rewatch(self._fd, wanted)


def _respond(reply: bytes, connection: Connection, _destination: object) -> None:
    connection.send(reply)
