"""Listening sockets of the host: shared with no other program, and tuned for loopback."""

from __future__ import annotations

import _socket
from errno import EADDRINUSE

from netsandbox.runtime.listener import Listener, bind_socket
from netsandbox_portmap.host_ports import NO_SUCH_ADDRESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netsandbox.runtime.loop import Loop

BACKLOG = 4096  # at least as long as the queue of a listening door of the session
# Without a limit, the kernel lets the queue of a fast connection grow to megabytes, and each byte has left the
# processor's cache before it is read. With half a megabyte, a forwarded connection reached 0.59 to 0.68 of a direct one
# in three runs on two shared cores, without it 0.51 to 0.54; in a fourth run there was no gain.
MAX_QUEUE = 512 * 1024


def tune(sock: _socket.socket) -> None:
    """Set the options of a forwarded connection's socket before listen or connect; accepted sockets inherit them."""
    sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVBUF, MAX_QUEUE)
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, MAX_QUEUE)


class Acceptor(Listener):
    """Owns a bound socket and listens at once. A socket that already listens keeps listening."""

    __slots__ = ("address", "port")

    def __init__(
        self, loop: Loop, bound: _socket.socket, receive: Callable[[_socket.socket], None], *, shared: bool = False
    ) -> None:
        self.address, self.port = bound.getsockname()[:2]
        # Connections that outlive the listener must not block the same port for us. The kernel still refuses a port on
        # which another socket listens (socket(7), SO_REUSEADDR).
        bound.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        tune(bound)
        bound.listen(BACKLOG)
        super().__init__(loop, bound, lambda sock, source: receive(sock), shared=shared)


def bind(address: str, port: int) -> _socket.socket:
    """A bound, non-blocking socket that no other program shares.

    The first try is without SO_REUSEADDR, so that a port which is only reserved cannot be taken over. The second try is
    with it, for a port that only our own closed connections still hold.
    """
    try:
        bound = bind_socket(address, port, _socket.SOCK_STREAM)
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
        bound = bind_socket(address, port, _socket.SOCK_STREAM, reuse=True)
    bound.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
    return bound


def bind_all(addresses: Iterable[str], port: int) -> list[_socket.socket]:
    """One bound socket for each address that this host has. On an error, no socket stays open."""
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


def listen_all(
    loop: Loop, sockets: list[_socket.socket], receive: Callable[[_socket.socket], None], *, shared: bool = False
) -> list[Acceptor]:
    """Listen on all *sockets*; other processes accept on *shared* ones too. On an error, none stays open."""
    acceptors: list[Acceptor] = []
    try:
        for sock in sockets:
            acceptors.append(Acceptor(loop, sock, receive, shared=shared))
    except OSError:
        for acceptor in acceptors:
            acceptor.close()
        _close(sockets)
        raise
    return acceptors


def _close(sockets: Iterable[_socket.socket]) -> None:
    for sock in sockets:
        sock.close()
