"""Lists the session's sockets from outside, with a netlink socket that PID 1 made in its network.

Before that socket has arrived, and on a kernel without sock_diag, the session's tables in /proc are read instead.
"""

from __future__ import annotations

import _socket

from netsandbox.backends.linux import procfs
from netsandbox.backends.linux.socket_diag import ANY, BOUND, LISTENING, TCP, UDP, internet_sockets
from netsandbox.backends.linux.socket_table import listeners, local_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.backends.namespaces.inside_sockets import InsideSockets


class SessionSockets:
    """*init* is the pid of the session's PID 1 on the host."""

    def __init__(self, init: int, inner: InsideSockets) -> None:
        self._init = init
        self._diag: _socket.socket | None = None
        inner.take(_socket.AF_NETLINK, self._arrived)

    def listening(self) -> list[tuple[str, int, str]]:
        """Address, port and inode of each listening socket."""
        if self._diag is not None:
            try:
                return list(internet_sockets(self._diag, TCP, LISTENING))
            except (OSError, ValueError):
                self.close()
        return [found for table in self._tables("tcp", "tcp6") for found in listeners(table)]

    def ports_in_use(self, *, bound: bool) -> set[int]:
        """Ports that TCP listens on or UDP uses; with *bound*, which takes milliseconds, also other bound TCP ports."""
        if self._diag is not None:
            try:
                states = LISTENING | BOUND if bound else LISTENING
                found = {port for _, port, _ in internet_sockets(self._diag, TCP, states)}
                return found | {port for _, port, _ in internet_sockets(self._diag, UDP, ANY)}
            except (OSError, ValueError):
                self.close()
        return set().union(*map(local_ports, self._tables("tcp", "tcp6", "udp", "udp6")))

    def close(self) -> None:
        if self._diag is not None:
            self._diag.close()
            self._diag = None

    def _arrived(self, made: _socket.socket | None) -> None:
        self._diag = made

    def _tables(self, *names: str) -> Iterator[str]:
        for name in names:
            try:
                yield procfs.read(f"/proc/{self._init}/net/{name}")
            except OSError:  # the session has ended, or this kernel has no IPv6
                continue
