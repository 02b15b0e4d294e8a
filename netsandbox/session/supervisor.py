"""Serves one session from outside until its command has ended. The backend provides what differs between systems.

The supervisor runs in the host's network, holds the policy and the log, and is the session's only way out. If the
supervisor dies, the command is ended (INV-10). If a handler fails, its connection is refused and the error is recorded
(INV-1).

Doors open at the first packet, so a command that never uses the network does not pay for them. Their modules are loaded
one by one while the command starts. For a backend with `serves_first`, everything opens before the command starts.
"""

from __future__ import annotations

import os
from _socket import MSG_DONTWAIT, MSG_PEEK

from netsandbox.errors import HostError
from netsandbox.frozen import copy_with
from netsandbox.runtime.imports import DOORS
from netsandbox.runtime.loop import HUP, IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox_portmap.contract import Dial
    from netsandbox_portmap.session_dial import PortRequest

    from netsandbox.backends.contract import Backend, DoorSockets, Localhost, Serving, SessionContext
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.session.control import Control
    from netsandbox.session.doors import Doors
    from netsandbox.session.offered_port import Give
    from netsandbox.session.upstream import ServiceInputs

LINGER_SECONDS = 0.25
MAX_LINGER = 5.0  # seconds for replies that a slow client of the host is still reading
SETTLING_ROUNDS = 4
WARM_UP_AFTER = 0.005
KILLED = 9  # the wait status of a session that ended without reporting one
PATIENCE = 5.0  # seconds between the request to end and the end


class Supervisor:
    """The supervisor of one session. `status` is the command's wait status once it has ended."""

    def __init__(
        self, backend: Backend, context: SessionContext, inputs: ServiceInputs, facts: dict[str, object]
    ) -> None:
        self._backend = backend
        self._context = context
        self._log = inputs.log
        self._facts = facts  # the part of the session's status that never changes
        self._loop = backend.open_loop(self._failed)
        self._inbox = self._open_inbox()
        self._inputs = copy_with(inputs, inbox=None if context.settings.ask is None else self._inbox)
        self._sockets: DoorSockets | None = None
        self._doors: Doors | None = None
        self._serving: Serving | None = None
        self.control: Control | None = None  # the session closes it last: its end is the session's end
        self._is_open = True
        self._last_moment = 0.0
        self.status = KILLED

    def open_everything(self) -> None:
        """Open doors and control socket before the command starts. An error leaves nothing open."""
        try:
            self._serving = self._backend.serve(self._loop, self._on_end)
            self._sockets = self._backend.doors()
            if self._sockets is not None:
                self._doors = self._open_doors(self._sockets)
            self.open_control()
        except BaseException:
            self.close()
            raise

    def run(self) -> None:
        """Serve until the command has ended."""
        if self._serving is None:
            self._serving = self._backend.serve(self._loop, self._on_end)
            self._serving.inbox = self._inbox
            self._serving.begin()
            self._sockets = self._backend.doors()
            for sock in self._sockets.all if self._sockets is not None else ():
                self._loop.watch(sock.fileno(), IN, self._on_packet(sock))
            self._loop.call_later(WARM_UP_AFTER, self._begin_warm_up)
        else:
            from netsandbox.runtime.listener import raise_descriptor_limit

            raise_descriptor_limit()  # not earlier, so that the command keeps its own limit
            self._serving.begin()
        lifeline, detached = self._context.command.lifeline, self._context.command.detached
        if lifeline is not None:
            self._loop.watch(lifeline, IN, lambda events: self._cut(lifeline))
        if detached is not None:
            self._loop.watch(detached.output, IN, detached.on_output)
        self._loop.run()

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._inbox is not None:
            self._inbox.close()
        if self._serving is not None:
            self._serving.close()
        if self._doors is not None:
            self._doors.close()
        for sock in self._sockets.all if self._sockets is not None else ():
            sock.close()
        self._loop.close()

    def budgets(self) -> list[dict[str, object]] | None:
        """What was used of each budget; None if there is none, or no door was ever opened."""
        found = None if self._doors is None else self._doors.gate.budgets
        return None if found is None else found.used()

    @property
    def _localhost(self) -> Localhost | None:
        return self._serving.localhost if self._serving is not None else None

    # The end of the command

    def _on_end(self, status: int | None) -> None:
        """Called once by the backend. None: the command ended without a status."""
        if status is not None:
            self.status = status
        self._last_moment = self._loop.now() + MAX_LINGER
        self._linger(self._loop.now() + LINGER_SECONDS, SETTLING_ROUNDS)

    def _linger(self, until: float, rounds: int, moved: int = 0) -> None:
        """Serve on for a moment: the command's last data may be in a door's queue, in a relay or on its way to the log.

        A few more rounds of the loop handle the queue: one opens the doors, one accepts, one reads. While bytes still
        flow to a client of the host, there is more time: without us, the kernel would deliver them after the exit.
        """
        localhost = self._localhost
        now, so_far = self._loop.now(), localhost.moved if localhost is not None else 0
        if so_far != moved:
            until = min(now + LINGER_SECONDS, self._last_moment)
        if rounds:
            self._loop.call_later(0, lambda: self._linger(until, rounds - 1, so_far))
        elif not self._is_busy() or now >= until:
            self._loop.stop()
        else:
            self._loop.call_later(0.005, lambda: self._linger(until, 0, so_far))

    def _is_busy(self) -> bool:
        return self._flows() > 0 or (self._serving is not None and self._serving.awaits_records(self.status))

    def _cut(self, lifeline: int) -> None:
        """The program that started the session wants its end, or has ended."""
        self._loop.unwatch(lifeline)
        self._backend.kill()

    # Doors

    def _on_packet(self, door: _socket.socket) -> Callable[[int], None]:
        """Opens the doors for a first packet, but not for the end of a session that has sent none: a socket of the
        broker is readable then too."""

        def handle(events: int) -> None:
            if events & HUP and not door.recv(1, MSG_PEEK | MSG_DONTWAIT):
                self._loop.unwatch(door.fileno())
            else:
                self._on_first_packet()

        return handle

    def _on_first_packet(self) -> None:
        assert self._sockets is not None
        for sock in self._sockets.all:
            self._loop.unwatch(sock.fileno())
        try:
            from netsandbox.runtime.listener import raise_descriptor_limit

            raise_descriptor_limit()
            self._doors = self._open_doors(self._sockets)
        except BaseException:
            for sock in self._sockets.all:  # refuse connections that cannot be served instead of keeping them waiting
                sock.close()
            raise

    def _open_doors(self, sockets: DoorSockets) -> Doors:
        from netsandbox.session.doors import Doors

        return Doors(self._loop, self._inputs, sockets, self._context.settings.bounds)

    def _begin_warm_up(self) -> None:
        try:
            self.open_control()
        finally:
            self._warm_up(0)

    def _warm_up(self, number: int) -> None:
        """Load one module in each round, so a command that ends soon waits for at most one."""
        modules = DOORS + self._backend.needed_modules
        if self._doors is None and number < len(modules):
            __import__(modules[number])
            self._loop.call_later(0, lambda: self._warm_up(number + 1))

    # The control socket

    def open_control(self) -> None:
        """Open the control socket. If that fails, the session runs, but `ps` and `stop` do not find it."""
        if self.control is not None:
            return
        from netsandbox.session.control import EXEC, SETTLE, Control

        approvals = self._inbox.handle_reply if self._inbox is not None else None
        try:
            self.control = Control(self._loop, str(self._facts["control"]), self._status, self._stop, approvals)
            self.control.offer = self._offer
            self.control.handlers[EXEC] = self._execute
            self.control.handlers[SETTLE] = self._settle
        except HostError as error:
            self._failed(error)

    def _open_inbox(self) -> Inbox | None:
        settings, stderr = self._context.settings, self._context.stderr
        wait = settings.ask_files if settings.ask is None else settings.ask
        if wait is None:
            return None
        from netsandbox.runtime.inherited import write_notice
        from netsandbox.session.approvals.desktop import open_desktop
        from netsandbox.session.approvals.inbox import Inbox

        loop = self._loop
        desktop = open_desktop(loop.now) if settings.notify else None

        def notify(text: str) -> None:
            write_notice(stderr, text)
            if desktop is not None:
                desktop.notify(text)

        return Inbox(self._log, wait, clock=loop.now, later=loop.call_later, notify=notify)

    def _status(self) -> dict[str, object]:
        localhost = self._localhost
        return {
            **self._facts,
            "name": self._backend.reservation.name,
            "init": self._backend.pid,
            **self._backend.usage(),
            "allowed": self._log.allowed_outside,
            "denied": self._log.denied_in_need,
            "flows": self._flows(),
            "ports": localhost.status() if localhost is not None else [],
            "pending": self._inbox.status() if self._inbox is not None else [],
        }

    def _offer(self, request: PortRequest, give: Give) -> Dial | None:
        from netsandbox.session.offered_port import offer

        localhost = self._localhost
        return offer(request, self._backend.reservation, localhost, self._log, give)

    def _stop(self) -> None:
        """Handle `netsandbox stop`: ask every command to end, and kill those that do not."""
        self._backend.ask_to_end()
        self._loop.call_later(PATIENCE, self._backend.kill)

    def _execute(self, passed: list[int], pid: int, uid: int) -> bytes:
        from netsandbox.session.exec_requests import ExecRequests

        self._write_counts()  # what was refused before is in records before that of the command
        return ExecRequests(self._backend, self._context).handle(passed, pid, uid)

    def _settle(self, passed: list[int], pid: int, uid: int) -> bytes:
        """A second command has ended, and its client reads the log now."""
        from netsandbox.session.control import DONE

        for descriptor in passed:
            os.close(descriptor)
        self._write_counts()
        return DONE

    def _write_counts(self) -> None:
        if self._serving is not None:
            self._serving.settle()
        if self._doors is not None:
            self._doors.settle()

    def _flows(self) -> int:
        localhost = self._localhost
        doors = self._doors.flows if self._doors is not None else 0
        return doors + (localhost.flows if localhost is not None else 0)

    def _failed(self, error: BaseException) -> None:
        self._log.write("policy", verdict="deny", reason="internal", detail=repr(error))
