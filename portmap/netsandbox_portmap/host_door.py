"""One port of the host's localhost, or of another session, inside the session (`--connect-host`), on its loopback.

The socket was made inside before the command ran. Each connection is recorded, then joined with the port on the host,
or with the socket that the other session's supervisor hands out. Nothing is parsed: the user decided that the command
may reach this port.
"""

from __future__ import annotations

import _socket

from netsandbox.policy import reasons
from netsandbox_portmap.acceptor import Acceptor
from netsandbox_portmap.forward import MAX_CONNECTIONS, Forward, hang_up
from netsandbox_portmap.localhost_settings import HostPort
from netsandbox_portmap.publish_addresses import LOCALHOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.audit.log import AuditLog
    from netsandbox.runtime.loop import Loop
    from netsandbox.runtime.relay import RelayPool
    from netsandbox_portmap.contract import Dial


class HostSockets:
    """Makes sockets in the host's network (an `Inside` of the contract, in the other direction)."""

    @staticmethod
    def take(family: int, done: Callable[[_socket.socket | None], None]) -> None:
        try:
            made = _socket.socket(family, _socket.SOCK_STREAM)
        except OSError:
            done(None)
            return
        made.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
        done(made)


class HostDoor:
    """Serves one listening socket of the session until it is closed."""

    def __init__(
        self,
        loop: Loop,
        sock: _socket.socket,
        door: HostPort,
        log: AuditLog,
        relays: RelayPool,
        unheard: Callable[[HostPort, str], None],
    ) -> None:
        self._loop = loop
        self._door = door
        self._known: str | None = None  # the id of the session that had the name last
        self._log = log
        self._relays = relays
        self._unheard = unheard  # nothing listens there, or it is refused; the client gets a reset
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

        forward = Forward(client, self._relays, over, lambda: self._unheard(self._door, ""))
        self._open.add(forward)
        if self._door.session is None:
            forward.start(self._loop, HostSockets, [(address, self._door.reached) for address in LOCALHOST])
        else:
            forward.begin(self._dial_session)

    def _dial_session(self, done: Callable[[_socket.socket | None, str], None]) -> Dial:
        from netsandbox_portmap.session_dial import PortRequest, SessionDial

        def reached(sock: _socket.socket | None, why: str) -> None:
            self._known = dial.known
            if sock is None:
                self._unheard(self._door, why)
            done(sock, why)

        request = PortRequest(str(self._door.session), self._door.reached, self._log.session)
        dial = SessionDial(self._loop, request, self._known, reached)
        return dial

    def _record(self) -> bool:
        return self._log.write(
            "egress",
            verdict="allow",
            reason=reasons.RULE,
            rule=f"--connect-host {self._door}",
            door="host",
            host=self._door.host,
            port=self._door.reached,
        )

    def _ended(self, began: float, moved: tuple[int, int] | None) -> None:
        up, down = moved or (0, 0)
        self._log.write(
            "egress.end",
            door="host",
            host=self._door.host,
            port=self._door.reached,
            bytes_up=up,
            bytes_down=down,
            ms=int((self._loop.now() - began) * 1000),
            outcome="unreachable" if moved is None else "closed",
        )
