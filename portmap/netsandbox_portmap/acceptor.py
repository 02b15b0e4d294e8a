"""A listening socket of the host whose connections go to one receiver.

Rules: what the kernel has queued is taken in one round, in bounds; when it cannot give a descriptor the queue waits
100 ms and the loop sleeps meanwhile; an accepted socket is non-blocking and belongs to the receiver.
"""

from __future__ import annotations

import _socket
from errno import EADDRINUSE

from netsandbox_portmap.host_ports import NO_SUCH_ADDRESS
from netsandbox_portmap.tuning import tune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox_portmap.contract import Loop, Timer

ACCEPTS = 64  # per round, so that established connections get their turn
PAUSE = 0.1  # seconds without accepting after the kernel ran out of something
BACKLOG = 4096  # no less than a door of the session has that listens already
IN = 1  # as in epoll(7); the loop of another system translates


class Acceptor:
    """Owns a bound socket; listens from the first moment (one that listens already goes on)."""

    __slots__ = ("_listener", "_loop", "_pause", "_receive", "address", "port")

    def __init__(self, loop: Loop, bound: _socket.socket, receive: Callable[[_socket.socket], None]) -> None:
        self._loop = loop
        self._listener: _socket.socket | None = bound
        self._receive = receive
        self._pause: Timer | None = None
        self.address, self.port = bound.getsockname()[:2]
        bound.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
        # Connections that outlive the listener must not keep us from the same port; the kernel still refuses to
        # everybody a port that is listened on (socket(7), SO_REUSEADDR).
        bound.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        tune(bound)
        bound.listen(BACKLOG)
        loop.watch(bound.fileno(), IN, self._on_listener)

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        if self._pause is None:
            self._loop.unwatch(listener.fileno())
        else:
            self._pause.cancel()
        listener.close()

    def _on_listener(self, events: int) -> None:
        for _ in range(ACCEPTS):
            listener = self._listener
            if listener is None:  # closed by what it received
                return None
            try:
                fd, _source = listener._accept()  # type: ignore[attr-defined]  # accept without `socket`
            except BlockingIOError:
                return None
            except ConnectionError:  # it left while it was queued
                continue
            except OSError:
                return self._rest(listener)
            sock = _socket.socket(listener.family, _socket.SOCK_STREAM, listener.proto, fd)
            sock.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
            self._receive(sock)
        return None

    def _rest(self, listener: _socket.socket) -> None:
        """Stop accepting for a moment: the queue of the kernel holds the newcomers."""
        self._loop.unwatch(listener.fileno())
        self._pause = self._loop.call_later(PAUSE, self._resume)

    def _resume(self) -> None:
        self._pause = None
        if self._listener is not None:
            self._loop.watch(self._listener.fileno(), IN, self._on_listener)


def bind(address: str, port: int) -> _socket.socket:
    """A bound, non-blocking socket that nobody shares with us.

    First without SO_REUSEADDR, so that a number which is only reserved cannot be taken over; then with it, for a port
    that just our own ended connections hold.
    """
    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
    try:
        return _bound(family, address, port, reuse=0)
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
    return _bound(family, address, port, reuse=1)


def _bound(family: int, address: str, port: int, *, reuse: int) -> _socket.socket:
    sock = _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, reuse)
        if family == _socket.AF_INET6:
            sock.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def bind_all(addresses: Iterable[str], port: int) -> list[_socket.socket]:
    """One bound socket for each address that this host has, or an error and none at all."""
    sockets: list[_socket.socket] = []
    try:
        for address in addresses:
            try:
                sockets.append(bind(address, port))
            except OSError as error:
                if address != "::1" or error.errno not in NO_SUCH_ADDRESS:
                    raise
    except OSError:
        _close(sockets)
        raise
    return sockets


def listen_all(loop: Loop, sockets: list[_socket.socket], receive: Callable[[_socket.socket], None]) -> list[Acceptor]:
    """All of them listen, or none is left open."""
    acceptors: list[Acceptor] = []
    try:
        for sock in sockets:
            acceptors.append(Acceptor(loop, sock, receive))
    except OSError:
        for acceptor in acceptors:
            acceptor.close()
        _close(sockets)
        raise
    return acceptors


def _close(sockets: Iterable[_socket.socket]) -> None:
    for sock in sockets:
        sock.close()
