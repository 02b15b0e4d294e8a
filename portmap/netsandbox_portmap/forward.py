"""One forwarded connection: a client on the host, a listener inside, and the relay between them.

Rules: nothing is read from the client before the listener inside has answered; a listener that refuses makes the
client see a reset, as it would on its own machine; `done` is called once, when nothing of the connection is left, with
the bytes up and down, or None when no listener was reached.
"""

from __future__ import annotations

import _socket
import sys

from netsandbox_portmap.inside_dial import REFUSED, InsideDial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from netsandbox_portmap.contract import Closeable, Inside, Loop, Splice

    Moved = tuple[int, int]

CONNECTIONS = 4096  # at once, through one door of the host
RESET_ON_CLOSE = (1).to_bytes(4, sys.byteorder) + bytes(4)  # struct linger {1, 0}


class Forward:
    """Owns the client until the relay does. `refused()` is told when nothing listens inside any more."""

    __slots__ = ("_client", "_done", "_reach", "_refused", "_relay", "_splice")

    def __init__(
        self,
        client: _socket.socket,
        splice: Splice,
        done: Callable[[Forward, Moved | None], None],
        refused: Callable[[], None],
    ) -> None:
        self._client: _socket.socket | None = client
        self._splice = splice
        self._done: Callable[[Forward, Moved | None], None] | None = done
        self._refused = refused
        self._reach: InsideDial | None = None
        self._relay: Closeable | None = None

    def start(self, loop: Loop, inside: Inside, addresses: Sequence[tuple[str, int]]) -> None:
        self._reach = InsideDial(loop, inside, addresses, self._reached)
        self._reach.start()

    def close(self) -> None:
        """End it now, with a reset on either side that still waits for something."""
        if self._reach is not None:
            self._reach.close()
            self._reach = None
        if self._relay is not None:
            self._relay.close()  # tells `_over`
        self._end()

    def _reached(self, server: _socket.socket | None, reason: str) -> None:
        self._reach = None
        client = self._client
        assert client is not None
        if server is None:
            self._end()
            if reason == REFUSED:
                self._refused()
            return
        self._client = None
        relay = self._splice(client, server, b"", self._over)
        if self._done is not None:  # it may be over already
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
    """Close with a reset: the peer must not take silence for an answer."""
    try:
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, RESET_ON_CLOSE)
    except OSError:
        pass
    sock.close()
