"""A connected, non-blocking socket, the events it waits for and its handlers.

Rules: the descriptor leaves the loop before it is closed; a stream that waits for no event is not registered at all (a
half-closed socket reports HUP for ever otherwise, epoll_ctl(2)); an exception in a handler closes everything that
belongs to the stream (INV-1).
"""

from __future__ import annotations

import _socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop

MAX_BUFFER = 64 * 1024  # bytes of one direction that are held in memory
RESET_ON_CLOSE = (1).to_bytes(4, sys.byteorder) + bytes(4)  # struct linger {1, 0}


class Stream:
    """Owns the socket. `on_ready(events)` may be replaced at any time; `on_failure()` closes the owner."""

    __slots__ = ("events", "fd", "loop", "on_failure", "on_ready", "recv", "sock")

    def __init__(self, loop: Loop, sock: _socket.socket, on_ready: Callable[[int], None]) -> None:
        self.loop = loop
        self.sock = sock
        self.fd = sock.fileno()
        self.events = 0
        self.on_ready = on_ready
        self.on_failure: Callable[[], None] | None = None
        self.recv = sock.recv

    def ready(self, events: int) -> None:
        try:
            self.on_ready(events)
        except OSError:  # the peer is gone, as happens every day
            self._fail()
        except Exception:  # our own fault: close, then let the loop report it
            self._fail()
            raise

    def want(self, events: int) -> None:
        if events == self.events:
            return
        if not self.events:
            self.loop.watch(self.fd, events, self.ready)
        elif events:
            self.loop.rewatch(self.fd, events)
        else:
            self.loop.unwatch(self.fd)
        self.events = events

    def read(self, size: int) -> bytes | None:
        """b"" at the end of the stream, None when there is nothing yet."""
        try:
            return self.recv(size)
        except BlockingIOError:
            return None

    def send(self, data: bytes | memoryview) -> int:
        """How many bytes the kernel took."""
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0

    def shut(self) -> None:
        """Half-close: no more bytes follow."""
        self.sock.shutdown(_socket.SHUT_WR)

    @property
    def closed(self) -> bool:
        return self.fd < 0

    def close(self) -> None:
        if self.fd < 0:
            return
        if self.events:
            self.loop.unwatch(self.fd)
        self.events = 0
        self.fd = -1
        self.on_ready = ignore_events  # which breaks the cycle through the bound method
        self.on_failure = None
        self.sock.close()

    def abort(self) -> None:
        """Close with a reset, so that the peer does not take what it got for the whole."""
        if self.fd >= 0:
            reset_on_close(self.sock)
            self.close()

    def _fail(self) -> None:
        failed = self.on_failure
        if failed is None:
            self.abort()
        else:
            failed()


def ignore_events(events: int) -> None:
    """The handler of a stream that is closed, or not watched yet."""


def reset_on_close(sock: _socket.socket) -> None:
    """Make the next close() of *sock* a reset (socket(7), SO_LINGER with a time of zero)."""
    try:
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, RESET_ON_CLOSE)
    except OSError:
        pass
