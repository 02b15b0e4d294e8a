"""Serves a session's localhost from outside: publishes listeners, gives out ports of the window, reaches host ports.

It is made at the first use. Each verdict is recorded before it takes effect (INV-5). An error here publishes nothing
and gives out nothing (INV-1).
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox.runtime.listener import raise_descriptor_limit
from netsandbox.runtime.relay import RelayPool
from netsandbox.text import join_host_port
from netsandbox_portmap import DOOR_PORTS, REWIRE_DEVICE, REWIRE_PORT
from netsandbox_portmap.bind_rule import rule_for
from netsandbox_portmap.bind_service import BindService
from netsandbox_portmap.by_name import ByName
from netsandbox_portmap.host_door import HostDoor
from netsandbox_portmap.notices import Notices
from netsandbox_portmap.published import Wanted
from netsandbox_portmap.publisher import MAX_PORTS, Publisher, PublishPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

    from netsandbox.audit.log import AuditLog
    from netsandbox.runtime.loop import Loop
    from netsandbox_portmap.bind_responder import BindResponder
    from netsandbox_portmap.bind_rule import BindRule
    from netsandbox_portmap.contract import Closeable, InsideSockets, SocketTable
    from netsandbox_portmap.published import Published
    from netsandbox_portmap.reservation import Reservation
    from netsandbox_portmap.window import Window


@frozen
class SessionNetwork:
    """The session's network as the host reaches it. `doors` are the sockets of its localhost by name."""

    inside: InsideSockets
    table: SocketTable
    doors: dict[str, _socket.socket]


class LocalhostService:
    """The service of one session. Notices go to *stderr*."""

    def __init__(
        self, loop: Loop, log: AuditLog, reservation: Reservation, network: SessionNetwork, *, stderr: int
    ) -> None:
        raise_descriptor_limit()
        self._loop = loop
        self._log = log
        self._reservation = reservation
        self._network = network
        self._notices = Notices(stderr)
        self._binds = BindService(loop, log, reservation, self._notices)
        self._repeats = self._binds.repeats
        self._forwarding = RelayPool(loop)
        self._doors = [
            HostDoor(loop, sock, sock.getsockname()[1], log, self._forwarding, self._notices.unheard)
            for name, sock in network.doors.items()
            if name != "requests"
        ]
        self._rule: BindRule | None = None
        self._publisher: Publisher | None = None
        self._names_at = reservation.by_name_port  # until that door opens
        self._closing: list[Closeable] = []
        if reservation.window is not None:
            self._open_window(reservation.window, network.doors.get("requests"))

    def _open_window(self, window: Window, requests: _socket.socket | None) -> None:
        held, settings = self._reservation, self._reservation.settings
        self._assignment = self._binds.assignment(() if held.by_name_port is None else (held.by_name_port,))
        if settings.guarded:
            self._rule = rule_for(settings.strategy, window, device_given=settings.device is not None)
        if settings.publishes:
            self._publisher = self._make_publisher(window)
            self._publisher.on_refused = self._look_again
        if held.map is not None:
            sockets = () if requests is None else (requests,)
            self._binds.open(sockets, self.rule, self._assignment, look=self._look, make_room=self._make_room)

    def _make_publisher(self, window: Window) -> Publisher:
        held, settings = self._reservation, self._reservation.settings
        plan = PublishPlan(
            settings.strategy,
            window,
            held.name,
            Wanted(automatic=settings.publish is None, fixed=dict(settings.publish or ())),
            held.by_name_port,
            device_given=settings.device is not None,
            excluded={*DOOR_PORTS, *settings.connect_host},
        )
        publisher = Publisher(self._loop, plan, self._assignment, self._network.inside, self._forwarding, self._note)
        publisher.reserved = held.fixed
        return publisher

    @property
    def responder(self) -> BindResponder | None:
        return self._binds.responder

    def _open_names(self, publisher: Publisher) -> None:
        """Open the door for NAME.localhost once something is published."""
        port, self._names_at = self._names_at, None
        if port is not None:
            name = self._reservation.name
            self._closing.append(ByName(self._loop, port, name, publisher, self._network.inside, self._forwarding))

    def _look_again(self, port: int) -> None:
        """Check the listeners: nothing answered inside at *port*."""
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
        """Bytes relayed between the host and the session."""
        return self._forwarding.moved

    def published(self) -> list[Published]:
        """The published ports. Ports that no longer listen are withdrawn first."""
        if self._publisher is None:
            return []
        self._check()
        return self._publisher.published()

    def status(self) -> list[dict[str, object]]:
        """`published` in the form that `netsandbox ports` shows."""
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

    def listening(self, address: str, port: int, pid: int, exe: str) -> None:
        """Handle a new listening socket of the session."""
        requested = self._requested_port(port)
        allowed: dict[str, object] = {"verdict": "allow", "reason": reasons.LOOPBACK}
        self._repeats.note(pid, event="listen", **allowed, address=address, port=port, exe=exe)
        if self._publisher is None or port in DOOR_PORTS:
            return
        if self._assignment.full:
            self._make_room()
        self._open_names(self._publisher)
        published = self._publisher.listening(address, port, requested=requested, pid=pid, exe=exe)
        if published is not None and self._reservation.map is None:
            self._record_rewrite(address, published)

    def refused(self, address: str, port: int) -> None:
        """Handle a bind that the guard refused."""
        self._notices.refused(self.rule, address, port)

    def _note(self, event: str, **fields: object) -> bool:
        """Record an event of the publisher. A port that cannot be published also gets a notice."""
        if fields.get("verdict") == "deny":
            why = {
                reasons.WINDOW_FULL: f"the window {self._reservation.window} has no free port",
                reasons.LIMIT: f"{MAX_PORTS} ports are published already",
            }
            self._notices.hidden(fields["port"], why.get(str(fields["reason"]), "it is taken"))
        return self._log.write(event, **fields)

    def close(self) -> None:
        self._binds.close()
        if self._publisher is not None:
            self._publisher.close()
        for part in (*self._closing, *self._doors, self._network.inside, self._network.table, self._forwarding):
            part.close()

    def _check(self) -> None:
        if self._publisher is not None:
            self._publisher.check(lambda: {(address, port) for address, port, _ in self._network.table.listening()})

    def _requested_port(self, port: int) -> int:
        """The port that the program requested, if the preload library rewrote it."""
        if self._reservation.map is None or self._reservation.settings.strategy != REWIRE_PORT:
            return port
        return self._assignment.requested_port(port) or port

    def _record_rewrite(self, address: str, published: Published) -> None:
        """Record a rewrite by the kernel: the program keeps its port, and the host sees another device or port."""
        if self._reservation.settings.strategy not in (REWIRE_DEVICE, REWIRE_PORT):
            return
        to = join_host_port(published.host_address, published.host_port)
        fields: dict[str, object] = {"from": join_host_port(address, published.port), "to": to, "exe": published.exe}
        self._repeats.note(published.pid, event="rewrite", **fields)

    def _look(self) -> None:
        self._binds.used = self._network.table.ports_in_use(bound=False)

    def _make_room(self) -> None:
        """Release assigned ports that no socket uses any more, when the window is full."""
        self._check()
        self._binds.used = self._network.table.ports_in_use(bound=True)
        shown = {found.port for found in self._publisher.published()} if self._publisher is not None else set()
        for requested, port in self._assignment.pairs():
            if requested not in shown and port not in self._binds.used:
                self._assignment.release(requested)
                if self._reservation.map is not None:
                    self._reservation.map.clear(port)
