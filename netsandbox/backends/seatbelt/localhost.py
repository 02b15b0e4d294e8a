"""A session's localhost on a Mac: gives out ports of the window to the preloaded library.

Nothing is published: the session's servers stand on the Mac's own loopback. The library is convenience; without it, or
past it, a bind outside of the window is refused by Seatbelt (INV-7).
"""

from __future__ import annotations

from netsandbox_portmap.assignment import Assignment
from netsandbox_portmap.bind_requests import BindRequestDoor
from netsandbox_portmap.bind_responder import BindResponder
from netsandbox_portmap.bind_rule import BindRule, rule_for
from netsandbox_portmap.host_ports import is_free_on_host
from netsandbox_portmap.notices import Notices
from netsandbox_portmap.strategies import REWIRE_DEVICE, REWIRE_PORT

from netsandbox.audit.folding import FoldedRecords
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.seatbelt.reservation import MacReservation
    from netsandbox.runtime.loop import Loop


class MacLocalhost:
    """One per session that has a map."""

    def __init__(self, loop: Loop, log: AuditLog, reservation: MacReservation, *, stderr: int) -> None:
        window, table, asking = reservation.window, reservation.map, reservation.asking
        assert window is not None
        assert table is not None
        assert asking is not None
        strategy = reservation.settings.strategy
        self._rewires_ports = strategy == REWIRE_PORT
        self._table = table
        self._repeats = FoldedRecords(log)
        self._assignment = Assignment(window.base, window.count, (), is_free_on_host)
        rule = rule_for(strategy, window, device_given=False)
        if strategy == REWIRE_DEVICE:  # Seatbelt opens the window alone, on whatever address
            rule = BindRule(window, rule.devices)
        answers = BindResponder(
            strategy,
            rule,
            self._assignment,
            table,
            self._repeats,
            Notices(stderr),
            look=_nothing,
            make_room=self._make_room,
        )
        self._doors = [BindRequestDoor(loop, sock, table.token, answers, self._unanswered) for sock in asking.sockets]

    def status(self) -> list[dict[str, object]]:
        """Ports that were mapped and that somebody has now, as `netsandbox ports` tells them."""
        if not self._rewires_ports:
            return []
        found = [(asked, port) for asked, port in self._assignment.pairs() if not is_free_on_host(port)]
        return [
            {"port": asked, "host_address": "127.0.0.1", "host_port": port, "url": f"http://127.0.0.1:{port}/"}
            for asked, port in found
        ]

    def close(self) -> None:
        self._repeats.flush()
        for door in self._doors:
            door.close()

    def _make_room(self) -> None:
        """The window is full of ports that were asked for once: those that nobody has any more are free."""
        for asked, port in tuple(self._assignment.pairs()):
            if is_free_on_host(port):
                self._assignment.release(asked)
                self._table.clear(port)

    def _unanswered(self, error: Exception) -> None:
        """A mistake of ours: the program was refused, which is in the log like every refusal."""
        fields = {"verdict": "deny", "reason": reasons.INTERNAL, "door": "preload", "detail": repr(error)}
        self._repeats.note(None, event="bind", **fields)


def _nothing() -> None:
    """Who has which port is asked of the host, port by port."""
