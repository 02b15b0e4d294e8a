"""Serves a session's localhost from outside: publishes what listens, gives out ports of the window, reaches host ports.

Made when the first of these is wanted. Each verdict is written before it has an effect (INV-5); what goes wrong in here
publishes nothing and gives out nothing (INV-1).
"""

from __future__ import annotations

from netsandbox.audit.folding import FoldedRecords
from netsandbox.backends.namespaces.inside_sockets import InsideSockets
from netsandbox.backends.namespaces.session_sockets import SessionSockets
from netsandbox.policy import reasons
from netsandbox.runtime.descriptor_limit import raise_descriptor_limit
from netsandbox.runtime.relay import RelayPool
from netsandbox.text import join_host_port
from netsandbox_portmap import door_ports
from netsandbox_portmap.assignment import Assignment
from netsandbox_portmap.bind_rule import rule_for
from netsandbox_portmap.by_name import ByName
from netsandbox_portmap.host_door import HostDoor
from netsandbox_portmap.host_ports import is_free_on_host
from netsandbox_portmap.notices import Notices
from netsandbox_portmap.published import Wanted
from netsandbox_portmap.publisher import Publisher
from netsandbox_portmap.strategies import REWIRE_DEVICE, REWIRE_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.namespaces.launch import Helper
    from netsandbox.runtime.loop import Loop
    from netsandbox_portmap.bind_responder import BindResponder
    from netsandbox_portmap.bind_rule import BindRule
    from netsandbox_portmap.contract import Closeable
    from netsandbox_portmap.port_map import PortMap
    from netsandbox_portmap.published import Published
    from netsandbox_portmap.reservation import Reservation
    from netsandbox_portmap.window import Window


class LocalhostService:
    """One per session. *sockets* are the doors of `plan.localhost_doors`, *stderr* where a refused bind is told."""

    def __init__(
        self,
        loop: Loop,
        helper: Helper,
        log: AuditLog,
        reservation: Reservation,
        sockets: dict[str, _socket.socket],
        *,
        stderr: int,
    ) -> None:
        raise_descriptor_limit()
        self._loop = loop
        self._log = log
        self._reservation = reservation
        self._repeats = FoldedRecords(log)
        self._notices = Notices(stderr)
        self._forwarding = RelayPool(loop)
        self.inner = InsideSockets(helper)
        self.sockets = SessionSockets(helper.pid, self.inner)
        self._doors = [
            HostDoor(loop, sock, sock.getsockname()[1], log, self._forwarding)
            for name, sock in sockets.items()
            if name != "asking"
        ]
        self._rule: BindRule | None = None
        self._used: set[int] = set()  # inside, when a preloaded library last asked
        self._publisher: Publisher | None = None
        self._names_at = reservation.by_name_port  # until that door is open
        self.answers: BindResponder | None = None  # for the preloaded library, in sessions that have one
        self._closing: list[Closeable] = []
        if reservation.window is not None:
            self._open_window(reservation.window, sockets.get("asking"))

    def _open_window(self, window: Window, asking: _socket.socket | None) -> None:
        held, settings = self._reservation, self._reservation.settings
        reserved = () if held.by_name_port is None else (held.by_name_port,)
        self._assignment = Assignment(window.base, window.count, reserved, self._is_free)
        if settings.guarded:
            self._rule = rule_for(settings.strategy, window, device_given=settings.device is not None)
        if settings.publishes:
            self._publisher = self._make_publisher(window)
            self._publisher.on_refused = self._look_again
        if held.map is not None:
            self.answers = self._make_answers(held.map)
            if asking is not None:
                self._open_asking(asking, held.map, self.answers)

    def _make_publisher(self, window: Window) -> Publisher:
        held, settings = self._reservation, self._reservation.settings
        return Publisher(
            self._loop,
            settings.strategy,
            window,
            self._assignment,
            self.inner,
            self._forwarding,
            self._note,
            held.name,
            Wanted(automatic=settings.publish is None, fixed=dict(settings.publish or ())),
            held.by_name_port,
            device_given=settings.device is not None,
            ours={*door_ports.ALL, *settings.connect_host},
            reserved=held.fixed,
        )

    def _open_asking(self, sock: _socket.socket, table: PortMap, answers: BindResponder) -> None:
        """The door where the preloaded library asks."""
        from netsandbox_portmap.bind_requests import BindRequestDoor

        self._closing.append(BindRequestDoor(self._loop, sock, table.token, answers, self._unanswered))

    def _make_answers(self, table: PortMap) -> BindResponder:
        from netsandbox_portmap.bind_responder import BindResponder

        return BindResponder(
            self._reservation.settings.strategy,
            self.rule,
            self._assignment,
            table,
            self._repeats,
            self._notices,
            look=self._look,
            make_room=self._make_room,
        )

    def _unanswered(self, error: Exception) -> None:
        """A mistake of ours: the program was refused, which is in the log like every refusal."""
        fields = {"verdict": "deny", "reason": reasons.INTERNAL, "door": "preload", "detail": repr(error)}
        self._repeats.note(None, event="bind", **fields)

    def _open_names(self, publisher: Publisher) -> None:
        """The door for NAME.localhost, once there is something behind it."""
        port, self._names_at = self._names_at, None
        if port is not None:
            name = self._reservation.name
            self._closing.append(ByName(self._loop, port, name, publisher, self.inner, self._forwarding))

    def _look_again(self, port: int) -> None:
        """Nothing answered inside at *port*."""
        self._check()

    @property
    def rule(self) -> BindRule:
        assert self._rule is not None
        return self._rule

    @property
    def flows(self) -> int:
        return self._forwarding.connections

    @property
    def moved(self) -> int:
        """Bytes that went between the host and the session."""
        return self._forwarding.moved

    def published(self) -> list[Published]:
        """What is published now; what no longer listens is withdrawn first."""
        if self._publisher is None:
            return []
        self._check()
        return self._publisher.published()

    def status(self) -> list[dict[str, object]]:
        """`published`, as `netsandbox ports` tells it."""
        return [
            {
                "port": found.port,
                "address": found.inside_address,
                "host_address": found.host_address,
                "host_port": found.host_port,
                "device_address": found.device_address,
                "url": found.url,
                "pid": found.pid,
                "exe": found.exe,
                "since": found.since,
            }
            for found in self.published()
        ]

    def heard(self, address: str, port: int, pid: int, exe: str) -> None:
        """A socket of the session listens."""
        asked = self._asked(port)
        allowed: dict[str, object] = {"verdict": "allow", "reason": reasons.LOOPBACK}
        self._repeats.note(pid, event="listen", **allowed, address=address, port=port, exe=exe)
        if self._publisher is None or port in door_ports.ALL:
            return
        if self._assignment.full:
            self._make_room()
        self._open_names(self._publisher)
        published = self._publisher.listening(address, port, asked=asked, pid=pid, exe=exe)
        if published is not None and self._reservation.map is None:
            self._record_rewrite(address, published)

    def refused(self, address: str, port: int) -> None:
        """The guard let nobody bind that."""
        self._notices.refused(self.rule, address, port)

    def _note(self, event: str, **fields: object) -> bool:
        """What the publisher has to say, for the log; that a port cannot be shown is for the user too."""
        if fields.get("verdict") == "deny":
            full = fields["reason"] == reasons.WINDOW_FULL
            why = f"the window {self._reservation.window} has no free port" if full else "it is taken"
            self._notices.hidden(fields["port"], why)
        return self._log.write(event, **fields)

    def close(self) -> None:
        self._repeats.flush()
        if self._publisher is not None:
            self._publisher.close()
        for part in (*self._closing, *self._doors, self.inner, self.sockets, self._forwarding):
            part.close()

    def _check(self) -> None:
        if self._publisher is not None:
            self._publisher.check(lambda: {(address, port) for address, port, _ in self.sockets.listening()})

    def _is_free(self, port: int) -> bool:
        return port not in self._used and is_free_on_host(port)

    def _asked(self, port: int) -> int:
        """The port that the program asked for, when a preloaded library changed it on the way."""
        if self._reservation.map is None or self._reservation.settings.strategy != REWIRE_PORT:
            return port
        return self._assignment.asked_of(port) or port

    def _record_rewrite(self, address: str, published: Published) -> None:
        """The kernel engine: the program's port is its own, and the host sees another device or port."""
        if self._reservation.settings.strategy not in (REWIRE_DEVICE, REWIRE_PORT):
            return
        to = join_host_port(published.host_address, published.host_port)
        fields: dict[str, object] = {"from": join_host_port(address, published.port), "to": to, "exe": published.exe}
        self._repeats.note(published.pid, event="rewrite", **fields)

    def _look(self) -> None:
        self._used = self.sockets.ports_in_use(bound=False)

    def _make_room(self) -> None:
        """The window is full of ports that were asked for once: those at which nothing stands any more are free."""
        self._check()
        self._used = self.sockets.ports_in_use(bound=True)
        shown = {found.port for found in self._publisher.published()} if self._publisher is not None else set()
        for asked, port in self._assignment.pairs():
            if asked not in shown and port not in self._used:
                self._assignment.release(asked)
                if self._reservation.map is not None:
                    self._reservation.map.clear(port)
