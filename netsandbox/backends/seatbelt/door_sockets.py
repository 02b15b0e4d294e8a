"""Sockets on both addresses of localhost at one port, which the kernel chooses and no other program shares.

All programs share the loopback. So SO_REUSEADDR is not set: on macOS it would let another program bind the same port.
Both addresses are bound, since a client of `localhost` may try either, and another program could bind the free one.
"""

from __future__ import annotations

import _socket
import errno

from netsandbox.errors import HostError
from netsandbox.runtime.listener import bind_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

TRIES = 64
BACKLOG = 1024
NO_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class DoorSockets:
    """One port of localhost, held until `close`. The door serves the sockets that listen or receive datagrams."""

    def __init__(self, avoid: Container[int], *, listens: bool, takes_datagrams: bool = False) -> None:
        self.sockets: list[_socket.socket] = []
        self.datagrams: list[_socket.socket] = []
        self.port = 0
        self._takes_datagrams = takes_datagrams
        for _ in range(TRIES):
            if self._take(avoid):
                break
            self.close()
        else:
            raise HostError("no port of localhost is free for a door; close programs that listen, and try again")
        if listens:
            for sock in self.sockets:
                sock.listen(BACKLOG)

    def close(self) -> None:
        for sockets in (self.sockets, self.datagrams):
            while sockets:
                sockets.pop().close()

    def _take(self, avoid: Container[int]) -> bool:
        """Whether both addresses were bound at one port; without IPv6, the one address that exists."""
        has_one = False
        try:
            self._bind("127.0.0.1", 0)
            if self.port in avoid:
                return False
            has_one = True
            self._bind("::1", self.port)
        except OSError as error:
            if error.errno in NO_IPV6 and has_one:
                return True
            if error.errno == errno.EADDRINUSE:
                return False
            self.close()
            raise HostError(f"cannot make a door on localhost: {error.strerror}; see `netsandbox doctor`") from None
        return True

    def _bind(self, address: str, port: int) -> None:
        self.sockets.append(bind_socket(address, port, _socket.SOCK_STREAM))
        self.port = self.sockets[0].getsockname()[1]
        if self._takes_datagrams:
            self.datagrams.append(bind_socket(address, self.port, _socket.SOCK_DGRAM))
