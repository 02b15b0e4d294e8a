"""A session's localhost on macOS: ports of the window for the preload library, their names, and the ports for `ps`.

The session's servers listen on the host's own loopback, which all programs share, so no port is published. Their names
are served by the gateway of all sessions, as on Linux.
"""

from __future__ import annotations

import os

from netsandbox_portmap import REWIRE_DEVICE, REWIRE_PORT
from netsandbox_portmap.bind_rule import BindRule, rule_for
from netsandbox_portmap.bind_service import BindService
from netsandbox_portmap.gateway import Gateway, GatewayPlan
from netsandbox_portmap.host_door import HostSockets
from netsandbox_portmap.host_ports import is_free_on_host
from netsandbox_portmap.localhost_settings import second_port
from netsandbox_portmap.notices import Notices

from netsandbox.runtime.relay import RelayPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox_portmap.assignment import Assignment

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.seatbelt.reservation import SeatbeltReservation
    from netsandbox.runtime.loop import Loop


class MappedServers:
    """The session's servers as the gateway finds them (`netsandbox_portmap.gateway.Directory`)."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._tls: set[int] = set()
        self.by_name_port: int | None = None
        self.on_refused: Callable[[int], None] = _ignore

    def used(self) -> list[tuple[int, int]]:
        """Each requested port that a program uses now, and the port that stands for it."""
        return [(requested, port) for requested, port in self._assignment.pairs() if not is_free_on_host(port)]

    def main_port(self) -> int | None:
        used = self.used()
        return used[0][0] if used else None

    def targets(self, requested: int | None) -> list[tuple[str, int]]:
        wanted = self.main_port() if requested is None else requested
        return [("127.0.0.1", port) for each, port in self._assignment.pairs() if each == wanted]

    def speaks_tls(self, requested: int) -> bool:
        return requested in self._tls

    def learn_tls(self, requested: int, *, speaks: bool) -> None:
        (self._tls.add if speaks else self._tls.discard)(requested)

    def url(self, requested: int, port: int, name: str) -> str:
        scheme = "https" if requested in self._tls else "http"
        if self.by_name_port is None:
            return f"{scheme}://127.0.0.1:{port}/"
        label = "" if requested == self.main_port() else f"{requested}."
        return f"{scheme}://{label}{name}.localhost:{self.by_name_port}/"


class SharedLocalhost:
    """One per session with a port map. Only connections by name pass through us."""

    def __init__(self, loop: Loop, log: AuditLog, reservation: SeatbeltReservation, *, stderr: int) -> None:
        window, table, requests = reservation.window, reservation.map, reservation.requests
        assert window is not None
        assert table is not None
        assert requests is not None
        strategy = reservation.settings.strategy
        self._rewires_ports = strategy == REWIRE_PORT
        self._table = table
        self._binds = BindService(loop, log, reservation, Notices(stderr))
        self._assignment = self._binds.assignment()
        rule = rule_for(strategy, window, device_given=False)
        if strategy == REWIRE_DEVICE:  # Seatbelt opens only the window, on any address
            rule = BindRule(window, rule.devices)
        self._binds.open(requests.sockets, rule, self._assignment, look=_nothing, make_room=self._make_room)
        self._name = reservation.name
        self._servers = MappedServers(self._assignment)
        self._relays = RelayPool(loop)
        self._gateway: Gateway | None = None
        if self._rewires_ports:
            settings = reservation.settings
            wanted = settings.gateway_port
            second = second_port(wanted, os.geteuid())
            plan = GatewayPlan(self._name, wanted, None, keep_host=settings.keep_host, second=second)
            self._gateway = Gateway(loop, plan, self._servers, HostSockets(), self._relays)
            self._gateway.open(_nothing)

    @property
    def flows(self) -> int:
        return self._relays.connections + (self._gateway.flows if self._gateway is not None else 0)

    @property
    def moved(self) -> int:
        return self._relays.moved + (self._gateway.moved if self._gateway is not None else 0)

    def status(self) -> list[dict[str, object]]:
        """The mapped ports that a program uses now."""
        if not self._rewires_ports:
            return []
        return [
            {
                "port": requested,
                "host_address": "127.0.0.1",
                "host_port": port,
                "url": self._servers.url(requested, port, self._name),
            }
            for requested, port in self._servers.used()
        ]

    def dial(self, port: int, done: Callable[[_socket.socket | None, str], None]) -> None:
        """Servers listen on the Mac's own localhost, where programs of the host reach them."""

    def close(self) -> None:
        self._binds.close()
        if self._gateway is not None:
            self._gateway.close()
        self._relays.close()

    def _make_room(self) -> None:
        """Release assigned ports that no program uses any more, when the window is full."""
        for requested, port in tuple(self._assignment.pairs()):
            if is_free_on_host(port):
                self._assignment.release(requested)
                self._table.clear(port)


def _nothing() -> None:
    """Nothing is to be done: each port is checked on the host when it is given out, and URLs are made on demand."""


def _ignore(port: int) -> None:
    """A server that does not answer is found out on demand too."""
