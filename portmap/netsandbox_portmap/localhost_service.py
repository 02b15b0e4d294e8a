"""Serves a session's localhost from outside: publishes listeners, gives out ports of the window, reaches host ports.

It is made at the first use. Each verdict is recorded before it takes effect (INV-5). An error here publishes nothing
and gives out nothing (INV-1).
"""

from __future__ import annotations

import os

from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox.runtime.listener import raise_descriptor_limit
from netsandbox.runtime.relay import RelayPool
from netsandbox.text import join_host_port
from netsandbox_portmap import DOOR_PORTS, REWIRE_DEVICE, REWIRE_PORT
from netsandbox_portmap.bind_rule import rule_for
from netsandbox_portmap.bind_service import BindService
from netsandbox_portmap.forward import InsideDial
from netsandbox_portmap.gateway import Gateway, GatewayPlan
from netsandbox_portmap.host_door import HostDoor
from netsandbox_portmap.localhost_settings import second_port
from netsandbox_portmap.notices import Notices
from netsandbox_portmap.published import Wanted
from netsandbox_portmap.publisher import MAX_PORTS, Publisher, PublishPlan

# vite and other servers clear the screen just after they began to listen, and the URL must stand below that.
ANNOUNCE_SECONDS = 1.0

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Mapping

    from netsandbox.audit.log import AuditLog
    from netsandbox.runtime.loop import Loop
    from netsandbox_portmap.bind_responder import BindResponder
    from netsandbox_portmap.bind_rule import BindRule
    from netsandbox_portmap.contract import Dial, InsideSockets, SocketTable
    from netsandbox_portmap.published import Published
    from netsandbox_portmap.reservation import Reservation
    from netsandbox_portmap.window import Window


@frozen
class SessionNetwork:
    """The session's network as the host reaches it. `doors` are the sockets of its localhost by name."""

    inside: InsideSockets
    table: SocketTable
    doors: Mapping[str, _socket.socket]


class LocalhostService:
    """The service of one session. Notices go to *stderr*. With *announce*, a terminal gets the URL of each server."""

    publisher_type: type[Publisher] = Publisher

    def __init__(
        self,
        loop: Loop,
        log: AuditLog,
        reservation: Reservation,
        network: SessionNetwork,
        *,
        stderr: int,
        announce: bool = False,
    ) -> None:
        raise_descriptor_limit()
        self._loop = loop
        self._log = log
        self._reservation = reservation
        self._network = network
        self._notices = Notices(stderr)
        self._announces = announce and os.isatty(stderr)
        self._binds = BindService(loop, log, reservation, self._notices)
        self._repeats = self._binds.repeats
        self._forwarding = RelayPool(loop)
        doors = {door.inside: door for door in reservation.settings.connect_host}
        self._doors = [
            HostDoor(loop, sock, doors[sock.getsockname()[1]], log, self._forwarding, self._notices.unheard)
            for name, sock in network.doors.items()
            if name != "requests"
        ]
        self._rule: BindRule | None = None
        self._publisher: Publisher | None = None
        self._gateway: Gateway | None = None
        self._waiting: list[tuple[str, int, int, str]] | None = []  # listeners, until the gateway's port is decided
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
            device_given=settings.device is not None,
            excluded={*DOOR_PORTS, *(door.inside for door in settings.connect_host)},
        )
        publisher = self.publisher_type(
            self._loop, plan, self._assignment, self._network.inside, self._forwarding, self._note
        )
        publisher.reserved = held.fixed
        return publisher

    @property
    def responder(self) -> BindResponder | None:
        return self._binds.responder

    def _open_gateway(self, publisher: Publisher) -> None:
        """Offer the session's name once something is published."""
        held = self._reservation
        wanted = held.settings.gateway_port
        second = second_port(wanted, os.geteuid())
        plan = GatewayPlan(held.name, wanted, held.by_name_port, keep_host=held.settings.keep_host, second=second)
        publisher.on_tls = self._announce
        self._gateway = Gateway(self._loop, plan, publisher, self._network.inside, self._forwarding)
        self._gateway.open(self._on_gateway)

    def _on_gateway(self) -> None:
        """The port for names is decided."""
        waiting, self._waiting = self._waiting or [], None
        assert self._publisher is not None
        wanted, port = self._reservation.settings.gateway_port, self._publisher.by_name_port
        if self._announces and port != wanted:
            self._notices.not_shared(wanted, port)
        for listener in waiting:
            self._publish(self._publisher, *listener)

    def _announce(self, port: int) -> None:
        if self._announces:
            self._loop.call_later(ANNOUNCE_SECONDS, lambda: self._write_url(port))

    def _write_url(self, port: int) -> None:
        if self._publisher is not None and self._publisher.targets(port):
            self._notices.served(self._publisher.url(port), port, self._publisher.host_url(port))

    def _look_again(self, port: int) -> None:
        """Check the listeners: nothing answered inside at *port*."""
        self._withdraw_gone()

    @property
    def rule(self) -> BindRule:
        assert self._rule is not None
        return self._rule

    @property
    def flows(self) -> int:
        return self._forwarding.connections + (self._gateway.flows if self._gateway is not None else 0)

    @property
    def moved(self) -> int:
        """Bytes relayed between the host and the session."""
        return self._forwarding.moved + (self._gateway.moved if self._gateway is not None else 0)

    def published(self) -> list[Published]:
        """The published ports. Ports that no longer listen are withdrawn first, and hidden ones are tried again."""
        if self._publisher is None:
            return []
        self._withdraw_gone()
        if self._publisher.hidden:
            self._make_room()
        for (address, port), (pid, exe) in tuple(self._publisher.hidden.items()):
            self._show(self._publisher, address, port, pid, exe)
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

    def dial(self, port: int, done: Callable[[_socket.socket | None, str], None]) -> Dial | None:
        """Connect to a published port for another session. None: nothing listens there."""
        targets = self._publisher.targets(port) if self._publisher is not None else []
        if not targets:
            return None
        dial = InsideDial(self._loop, self._network.inside, targets, done)
        dial.start()
        return dial

    def listening(self, address: str, port: int, pid: int, exe: str) -> None:
        """Handle a new listening socket of the session."""
        allowed: dict[str, object] = {"verdict": "allow", "reason": reasons.LOOPBACK}
        self._repeats.note(pid, event="listen", **allowed, address=address, port=port, exe=exe)
        if self._publisher is None or port in DOOR_PORTS:
            return
        if self._waiting is None:
            self._publish(self._publisher, address, port, pid, exe)
            return
        self._waiting.append((address, port, pid, exe))
        if self._gateway is None:
            self._open_gateway(self._publisher)

    def _publish(self, publisher: Publisher, address: str, port: int, pid: int, exe: str) -> None:
        if self._assignment.full or publisher.is_full:
            self._make_room()
        self._show(publisher, address, port, pid, exe)

    def _show(self, publisher: Publisher, address: str, port: int, pid: int, exe: str) -> None:
        published = publisher.listening(address, port, requested=self._requested_port(port), pid=pid, exe=exe)
        if published is None:
            return
        self._announce(published.port)
        if self._reservation.map is None:
            self._record_rewrite(address, published)

    def refused(self, address: str, port: int) -> None:
        """Handle a bind that the guard refused."""
        self._notices.refused(self.rule, address, port)

    def _note(self, event: str, **fields: object) -> bool:
        """Record an event of the publisher. A port that cannot be published also gets a notice."""
        if fields.get("verdict") == "deny":
            crowded = {
                reasons.WINDOW_FULL: f"the window {self._reservation.window} has no free port",
                reasons.LIMIT: f"{MAX_PORTS} ports are published already",
            }
            self._notices.hidden(fields["port"], crowded.get(str(fields["reason"])))
        return self._log.write(event, **fields)

    def close(self) -> None:
        self._binds.close()
        if self._publisher is not None:
            self._publisher.close()
        if self._gateway is not None:
            self._gateway.close()
        for part in (*self._doors, self._network.inside, self._network.table, self._forwarding):
            part.close()

    def _withdraw_gone(self) -> None:
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
        self._withdraw_gone()
        self._binds.used = self._network.table.ports_in_use(bound=True)
        shown = {found.port for found in self._publisher.published()} if self._publisher is not None else set()
        for requested, port in self._assignment.pairs():
            if requested not in shown and port not in self._binds.used:
                self._assignment.release(requested)
                if self._reservation.map is not None:
                    self._reservation.map.clear(port)
