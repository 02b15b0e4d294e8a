"""Gives out ports of the window to the preload library that requests them, for every program that binds.

The library is a convenience: without it, or past it, the backend refuses a bind outside of the window (INV-7). An error
in here gives out nothing (INV-1).
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
    """One per session. `used` are the ports that the session itself uses, as far as they are known."""

    def __init__(self, loop: Loop, log: AuditLog, reservation: Reservation, notices: Notices) -> None:
        self._loop = loop
        self._reservation = reservation
        self._notices = notices
        self.repeats = FoldedRecords(log)
        self.used: set[int] = set()
        self.responder: BindResponder | None = None  # for the preload library, in sessions that have it
        self._doors: list[BindRequestDoor] = []

    def assignment(self, reserved: tuple[int, ...] = ()) -> Assignment:
        """The window's ports, without those that are *reserved* for another use."""
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
        """Respond to requests. *look* refreshes `used`; *make_room* frees ports that nobody uses any more."""
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
        """An error of ours: the program was refused, which is in the log like every refusal."""
        fields = {"verdict": "deny", "reason": reasons.INTERNAL, "door": "preload", "detail": repr(error)}
        self.repeats.note(None, event="bind", **fields)
