"""One port of the host's localhost inside the session (`--connect-host`), at the same number on its loopback.

The socket was made inside before the command ran. Each connection is recorded, then joined with the port on the host.
Nothing is parsed: the user decided that the command may reach this port.
"""

from __future__ import annotations

import _socket

from netsandbox.policy import reasons
from netsandbox_portmap.acceptor import Acceptor
from netsandbox_portmap.forward import MAX_CONNECTIONS, Forward, hang_up
from netsandbox_portmap.publish_addresses import LOCALHOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.audit.log import AuditLog
    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.relay import RelayPool


class HostSockets:
    """Makes sockets in the host's network (an `Inside` of the contract, in the other direction)."""

    @staticmethod
    def take(family: int, done: Callable[[_socket.socket | None], None]) -> None:
        try:
            made = _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
        except OSError:
            done(None)
            return
        done(made)


class HostDoor:
    """Serves one listening socket of the session until it is closed."""

    def __init__(
        self,
        loop: Loop,
        sock: _socket.socket,
        port: int,
        log: AuditLog,
        relays: RelayPool,
        unheard: Callable[[int], None],
    ) -> None:
        self._loop = loop
        self._port = port
        self._log = log
        self._relays = relays
        self._unheard = unheard  # nothing listens on the host, and the client gets a reset
        self._open: set[Forward] = set()
        self._acceptor = Acceptor(loop, sock, self._receive)

    @property
    def flows(self) -> int:
        return len(self._open)

    def close(self) -> None:
        self._acceptor.close()
        for forward in tuple(self._open):
            forward.close()

    def _receive(self, client: _socket.socket) -> None:
        if len(self._open) >= MAX_CONNECTIONS or not self._record():  # INV-5
            hang_up(client)
            return
        began = self._loop.now()

        def over(forward: Forward, moved: tuple[int, int] | None) -> None:
            self._open.discard(forward)
            self._ended(began, moved)

        forward = Forward(client, self._relays, over, lambda: self._unheard(self._port))
        self._open.add(forward)
        forward.start(self._loop, HostSockets, [(address, self._port) for address in LOCALHOST])

    def _record(self) -> bool:
        return self._log.write(
            "egress",
            verdict="allow",
            reason=reasons.RULE,
            rule=f"--connect-host {self._port}",
            door="host",
            host="localhost",
            port=self._port,
        )

    def _ended(self, began: float, moved: tuple[int, int] | None) -> None:
        up, down = moved or (0, 0)
        self._log.write(
            "egress.end",
            door="host",
            host="localhost",
            port=self._port,
            bytes_up=up,
            bytes_down=down,
            ms=int((self._loop.now() - began) * 1000),
            outcome="unreachable" if moved is None else "closed",
        )
