"""One forwarded connection: a client on the host, a listener inside, and the relay between them.

Rules: nothing is read from the client before the listener inside has accepted. If the listener refuses, the client gets
a reset, as from a listener on the host. `done` is called once, at the end of the connection, with the bytes up and
down, or None if no listener was reached.
"""

from __future__ import annotations

import _socket
import errno

from netsandbox.runtime.loop import OUT
from netsandbox.runtime.stream import reset_on_close
from netsandbox_portmap.acceptor import tune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox.runtime.relay import PooledRelay, RelayPool
    from netsandbox_portmap.contract import Dial, Inside

    Moved = tuple[int, int]

MAX_CONNECTIONS = 4096  # at the same time, for each door of the host
DEADLINE = 10.0
REFUSED, LATE, UNABLE = "refused", "late", "unable"

_CONNECTED = (0, errno.EISCONN)
_UNDERWAY = (errno.EINPROGRESS, errno.EALREADY)


class InsideDial:
    """Connects to a listener inside the session, with a socket that was made there.

    `done` is called once, with the connected socket or with the reason of the failure, and not after `close`. The
    deadline covers both the wait for a socket and the connect. Addresses are tried in order, because a program may
    listen on IPv4 and IPv6.
    """

    __slots__ = ("_addresses", "_done", "_index", "_inside", "_loop", "_sock", "_timer")

    def __init__(
        self,
        loop: Loop,
        inside: Inside,
        addresses: Sequence[tuple[str, int]],
        done: Callable[[_socket.socket | None, str], None],
        deadline: float = DEADLINE,
    ) -> None:
        self._loop = loop
        self._inside = inside
        self._addresses = addresses
        self._done: Callable[[_socket.socket | None, str], None] | None = done
        self._index = 0
        self._sock: _socket.socket | None = None
        self._timer: Timer = loop.call_later(deadline, self._late)

    def start(self) -> None:
        """Try the next address."""
        if self._index >= len(self._addresses):
            return self._end(None, REFUSED)
        address = self._addresses[self._index][0]
        self._index += 1
        return self._inside.take(_socket.AF_INET6 if ":" in address else _socket.AF_INET, self._taken)

    def close(self) -> None:
        self._done = None
        self._timer.cancel()
        self._drop()

    def _taken(self, sock: _socket.socket | None) -> None:
        if self._done is None:  # closed or past the deadline
            if sock is not None:
                sock.close()
            return None
        if sock is None:
            return self._end(None, UNABLE)
        self._sock = sock
        try:
            tune(sock)
            code = sock.connect_ex(self._addresses[self._index - 1])
            if code in _UNDERWAY:
                return self._loop.watch(sock.fileno(), OUT, self._on_connect)
        except OSError:
            code = errno.ECONNREFUSED
        return self._check_connect(sock, code)

    def _on_connect(self, events: int) -> None:
        sock = self._sock
        assert sock is not None
        # A second connect distinguishes success, failure and "in progress", where SO_ERROR is 0 for both the first and
        # the last.
        code = sock.connect_ex(self._addresses[self._index - 1])
        if code in _UNDERWAY:
            return None
        self._loop.unwatch(sock.fileno())
        return self._check_connect(sock, code)

    def _check_connect(self, sock: _socket.socket, code: int) -> None:
        self._sock = None
        if code in _CONNECTED:
            return self._end(sock, "")
        sock.close()
        return self.start()

    def _late(self) -> None:
        self._drop()
        self._end(None, LATE)

    def _drop(self) -> None:
        sock, self._sock = self._sock, None
        if sock is not None:
            self._loop.unwatch(sock.fileno())
            sock.close()

    def _end(self, sock: _socket.socket | None, reason: str) -> None:
        done, self._done = self._done, None
        self._timer.cancel()
        assert done is not None
        done(sock, reason)


class Forward:
    """Owns the client until the relay does. `refused()` is called if nothing listens inside any more."""

    __slots__ = ("_client", "_dial", "_done", "_refused", "_relay", "_relays")

    def __init__(
        self,
        client: _socket.socket,
        relays: RelayPool,
        done: Callable[[Forward, Moved | None], None],
        refused: Callable[[], None],
    ) -> None:
        self._client: _socket.socket | None = client
        self._relays = relays
        self._done: Callable[[Forward, Moved | None], None] | None = done
        self._refused = refused
        self._dial: Dial | None = None
        self._relay: PooledRelay | None = None

    def start(self, loop: Loop, inside: Inside, addresses: Sequence[tuple[str, int]]) -> None:
        self.begin(lambda done: InsideDial(loop, inside, addresses, done))

    def begin(self, dial: Callable[[Callable[[_socket.socket | None, str], None]], Dial]) -> None:
        self._dial = dial(self._reached)
        self._dial.start()

    def close(self) -> None:
        """End the connection now, with a reset to each side that still waits."""
        if self._dial is not None:
            self._dial.close()
            self._dial = None
        if self._relay is not None:
            self._relay.close()  # calls `_over`
        self._end()

    def _reached(self, server: _socket.socket | None, reason: str) -> None:
        self._dial = None
        client = self._client
        assert client is not None
        if server is None:
            self._end()
            if reason == REFUSED:
                self._refused()
            return
        self._client = None
        relay = self._relays.join(client, server, b"", self._over)
        if self._done is not None:  # it may have ended already
            self._relay = relay

    def _over(self, up: int, down: int) -> None:
        self._relay = None
        self._end((up, down))

    def _end(self, moved: Moved | None = None) -> None:
        client, self._client = self._client, None
        if client is not None:
            hang_up(client)
        done, self._done = self._done, None
        if done is not None:
            done(self, moved)


def hang_up(sock: _socket.socket) -> None:
    """Close with a reset, so that the peer does not mistake the end for a complete reply."""
    reset_on_close(sock)
    sock.close()
