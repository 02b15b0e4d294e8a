"""A session's localhost on macOS: ports of the window for the preload library, and the used ports for `ps`.

Nothing is published: the session's servers listen on the host's own loopback, which all programs share.
"""

from __future__ import annotations

from netsandbox_portmap import REWIRE_DEVICE, REWIRE_PORT
from netsandbox_portmap.bind_rule import BindRule, rule_for
from netsandbox_portmap.bind_service import BindService
from netsandbox_portmap.host_ports import is_free_on_host
from netsandbox_portmap.notices import Notices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.seatbelt.reservation import SeatbeltReservation
    from netsandbox.runtime.loop import Loop


class SharedLocalhost:
    """One per session with a port map. Bytes do not pass through us, so there are no flows."""

    flows = 0
    moved = 0

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

    def status(self) -> list[dict[str, object]]:
        """The mapped ports that a program uses now."""
        if not self._rewires_ports:
            return []
        found = [(requested, port) for requested, port in self._assignment.pairs() if not is_free_on_host(port)]
        return [
            {"port": requested, "host_address": "127.0.0.1", "host_port": port, "url": f"http://127.0.0.1:{port}/"}
            for requested, port in found
        ]

    def close(self) -> None:
        self._binds.close()

    def _make_room(self) -> None:
        """Release assigned ports that no program uses any more, when the window is full."""
        for requested, port in tuple(self._assignment.pairs()):
            if is_free_on_host(port):
                self._assignment.release(requested)
                self._table.clear(port)


def _nothing() -> None:
    """No refresh is needed: each port is checked on the host when it is given out."""
