"""The relays of published ports: the proxy's ends and lanes, lent to the portmap component.

A forwarded connection is not judged (what may be published was decided before) and not timed: the socket of a dev
server's hot reload is silent for hours. Half-close and back-pressure are those of `Relay`.
"""

from __future__ import annotations

from netsandbox.runtime.pipes import PipePool
from netsandbox.runtime.relay import Relay
from netsandbox.runtime.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox_proxy.contract import Loop


class Forwarding:
    """Called with two connected sockets, which it owns from then on (`Splice` of the portmap's contract)."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._pipes = PipePool()
        self._open: set[Connection] = set()
        self.up = 0  # bytes of all connections that have ended
        self.down = 0

    def __call__(
        self, client: _socket.socket, server: _socket.socket, held: bytes, done: Callable[[int, int], None]
    ) -> Connection:
        connection = Connection(self, Stream(self._loop, client, _unready), Stream(self._loop, server, _unready), done)
        self._open.add(connection)
        connection.start(held)
        return connection

    @property
    def pipes(self) -> PipePool:
        return self._pipes

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def moved(self) -> int:
        """Bytes in both directions, of all connections."""
        return self.up + self.down + sum(connection.moved for connection in self._open)

    def ended(self, connection: Connection, up: int, down: int) -> None:
        self._open.discard(connection)
        self.up += up
        self.down += down

    def close(self) -> None:
        """Hang up on everybody."""
        for connection in tuple(self._open):
            connection.close()
        self._pipes.close()


class Connection:
    """One relay, from the first byte to the last; `done(up, down)` is told once."""

    __slots__ = ("_client", "_done", "_house", "_relay", "_server")

    def __init__(self, house: Forwarding, client: Stream, server: Stream, done: Callable[[int, int], None]) -> None:
        self._house = house
        self._client = client
        self._server = server
        self._done: Callable[[int, int], None] | None = done
        self._relay = Relay(client, server, house.pipes)
        self._relay.over = self._over
        client.on_failure = server.on_failure = self.close

    @property
    def moved(self) -> int:
        return self._relay.up.moved + self._relay.down.moved

    def start(self, held: bytes) -> None:
        try:
            self._relay.start(held)
        except OSError:  # the listener left at once
            self.close()
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Hang up at once, so that nobody takes a part for the whole."""
        self._finish(Stream.abort)

    def _over(self) -> None:
        self._finish(Stream.close)

    def _finish(self, let_go: Callable[[Stream], None]) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        up, down = self._relay.up.moved, self._relay.down.moved
        self._relay.close()
        let_go(self._client)
        let_go(self._server)
        self._house.ended(self, up, down)
        done(up, down)


def _unready(events: int) -> None:
    """Replaced by the relay before the end is watched."""
