"""Gives out ports of the window to the preload library, which requests one for each bind.

The library is a convenience: the backend refuses a bind outside the window if the library is missing or bypassed
(INV-7). An error here gives out nothing (INV-1).
"""

from __future__ import annotations

from netsandbox.audit.folding import FoldedRecords
from netsandbox.policy import reasons
from netsandbox_portmap.assignment import Assignment
from netsandbox_portmap.host_ports import is_free_on_host
from netsandbox_portmap.notices import Notices

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterable

    from netsandbox.audit.log import AuditLog
    from netsandbox.runtime.loop import Loop
    from netsandbox_portmap.bind_requests import BindRequestDoor
    from netsandbox_portmap.bind_responder import BindResponder
    from netsandbox_portmap.bind_rule import BindRule
    from netsandbox_portmap.reservation import Reservation


class BindService:
    """The service of one session. `used` are the ports that the session is known to use."""

    def __init__(self, loop: Loop, log: AuditLog, reservation: Reservation, notices: Notices) -> None:
        self._loop = loop
        self._reservation = reservation
        self._notices = notices
        self.repeats = FoldedRecords(log)
        self.used: set[int] = set()
        self.responder: BindResponder | None = None  # replies to the preload library, in sessions that load it
        self._doors: list[BindRequestDoor] = []

    def assignment(self, reserved: tuple[int, ...] = ()) -> Assignment:
        """An assignment over the window's ports, without those that are *reserved* for another use."""
        window = self._reservation.window
        assert window is not None
        return Assignment(window.base, window.count, reserved, self._is_free)

    def open(
        self,
        sockets: Iterable[_socket.socket],
        rule: BindRule,
        assignment: Assignment,
        *,
        look: Callable[[], None],
        make_room: Callable[[], None],
    ) -> None:
        """Serve requests. *look* refreshes `used`; *make_room* releases ports that no program uses any more."""
        from netsandbox_portmap.bind_requests import BindRequestDoor
        from netsandbox_portmap.bind_responder import BindResponder, PortUse

        table = self._reservation.map
        assert table is not None
        ports = PortUse(assignment, table, look, make_room)
        self.responder = BindResponder(self._reservation.settings.strategy, rule, ports, self.repeats, self._notices)
        for sock in sockets:
            self._doors.append(BindRequestDoor(self._loop, sock, table.token, self.responder, self._failed))

    def close(self) -> None:
        self.repeats.flush()
        for door in self._doors:
            door.close()

    def _is_free(self, port: int) -> bool:
        return port not in self.used and is_free_on_host(port)

    def _failed(self, error: Exception) -> None:
        """Record an error of ours. The program was refused, and the log has it like every refusal."""
        fields = {"verdict": "deny", "reason": reasons.INTERNAL, "door": "preload", "detail": repr(error)}
        self.repeats.note(None, event="bind", **fields)
