"""The accept loop, for every listening socket of a session.

Rules: a round takes a bounded number of connections, so that established ones get their turn; when the kernel has no
descriptor left, newcomers wait in its queue for a moment and the loop sleeps meanwhile (INV-1).
"""

from __future__ import annotations

import _socket
import select

from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from netsandbox.runtime.loop import Loop, Timer

    Receive = Callable[[_socket.socket, Any], None]  # the accepted socket and its peer's address

MAX_ACCEPTS = 64  # per round
MAX_DESCRIPTORS = 65536
MAX_DESCRIPTORS_OF_A_MAC = 10240  # OPEN_MAX: a Mac may name no hard limit and refuse more all the same
PAUSE = 0.1  # seconds without accepting after the kernel ran out of something
EXCLUSIVE = getattr(select, "EPOLLEXCLUSIVE", 0)  # epoll_ctl(2); a kqueue wakes all
_ROUND = range(MAX_ACCEPTS)


class Listener:
    """Owns a listening socket. *receive* owns each accepted socket, which is non-blocking. On a *shared* socket other
    processes accept too, and the kernel wakes one of those that wait."""

    __slots__ = ("_accepting", "_events", "_loop", "_pause", "_receive", "_sock")

    def __init__(self, loop: Loop, sock: _socket.socket, receive: Receive, *, shared: bool = False) -> None:
        self._loop = loop
        self._events = IN | EXCLUSIVE if shared else IN
        self._sock: _socket.socket | None = sock
        self._receive = receive
        self._pause: Timer | None = None
        self._accepting = False
        sock.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
        self.resume()

    def stop(self) -> None:
        """Accept nobody until `resume`; newcomers wait in the kernel's queue."""
        if self._accepting and self._sock is not None:
            self._accepting = False
            self._loop.unwatch(self._sock.fileno())

    def resume(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if not self._accepting and self._sock is not None:
            self._accepting = True
            self._loop.watch(self._sock.fileno(), self._events, self._on_ready)

    def close(self) -> None:
        if self._sock is None:
            return
        if self._pause is not None:
            self._pause.cancel()
        self.stop()
        self._sock.close()
        self._sock = None

    def _on_ready(self, events: int) -> None:
        sock = self._sock
        assert sock is not None
        accept, receive = sock._accept, self._receive  # type: ignore[attr-defined]  # accept() without `socket`
        family, proto = sock.family, sock.proto
        for _ in _ROUND:
            try:
                fd, source = accept()
            except BlockingIOError:
                return
            except ConnectionError:  # the client left while it was queued
                continue
            except OSError:
                self.stop()
                self._pause = self._loop.call_later(PAUSE, self.resume)
                return
            accepted = _socket.socket(family, _socket.SOCK_STREAM, proto, fd)
            accepted.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
            receive(accepted, source)
            if not self._accepting:  # stopped or closed by the receiver
                return


def bind_socket(address: str, port: int, kind: int, *, reuse: bool = False) -> _socket.socket:
    """A new socket, bound. One of IPv6 serves no IPv4, whose sockets are separate. *reuse* sets SO_REUSEADDR."""
    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
    sock = _socket.socket(family, kind)
    try:
        if reuse:
            sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        if family == _socket.AF_INET6:
            sock.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors as its user may have, within reason: a connection takes two and more.
    The command was started before and keeps the limit it had."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (MAX_DESCRIPTORS, MAX_DESCRIPTORS_OF_A_MAC):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, most) if hard > 0 else most, hard))
        except (OSError, ValueError):  # the lower limit still holds; doors refuse what they cannot accept
            continue
        return
