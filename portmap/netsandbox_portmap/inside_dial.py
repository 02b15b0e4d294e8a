"""One connection to a listener inside the session: a socket made in there, and a connect that does not block.

Rules: `done` is called once, with the connected socket or with the reason why there is none; the deadline covers both
the wait for a socket and the connect; addresses are tried in order, because a program may listen on IPv4 and IPv6.
"""

from __future__ import annotations

import _socket
import errno

from netsandbox_portmap.tuning import tune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from netsandbox_portmap.contract import Inside, Loop, Timer

DEADLINE = 10.0
OUT = 4  # as in epoll(7)
REFUSED, LATE, UNABLE = "refused", "late", "unable"

_CONNECTED = (0, errno.EISCONN)
_UNDERWAY = (errno.EINPROGRESS, errno.EALREADY)


class InsideDial:
    """`close` takes it back: then nobody is told."""

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
        if self._done is None:  # too late
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
        return self._judge(sock, code)

    def _on_connect(self, events: int) -> None:
        sock = self._sock
        assert sock is not None
        # Asking again tells success, failure and "not yet" apart, where SO_ERROR is 0 for both the first and the last.
        code = sock.connect_ex(self._addresses[self._index - 1])
        if code in _UNDERWAY:
            return None
        self._loop.unwatch(sock.fileno())
        return self._judge(sock, code)

    def _judge(self, sock: _socket.socket, code: int) -> None:
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
