"""Serves one session from outside: waits for the command, and opens the doors on the first packet.

It stands in the host's network, holds the policy and the log, and is the only way out of the session. When it dies the
kernel kills the session (INV-10); when one of its handlers fails, that connection is refused and the failure recorded,
never let through (INV-1).
"""

from __future__ import annotations

import _socket
import os

from netsandbox.runtime.import_sealing import DOORS
from netsandbox.runtime.loop import IN, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.localhost_service import LocalhostService
    from netsandbox_portmap.reservation import Reservation
    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.namespaces.bind_guard import BindGuard
    from netsandbox.backends.namespaces.launch import Helper, Message
    from netsandbox.backends.namespaces.seccomp_notify import Listener
    from netsandbox.backends.namespaces.unix_connect import UnixConnect
    from netsandbox.backends.namespaces.unix_pins import Pin
    from netsandbox.backends.namespaces.watched_paths import WatchedPaths
    from netsandbox.policy.policy import Policy
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.session.control import Control
    from netsandbox.session.doors import Doors
    from netsandbox.session.host_resolver import HostResolver
    from netsandbox.settings import Bounds

LINGER_SECONDS = 0.25
MAX_LINGER = 5.0  # for answers that a slow client of the host is still reading
SETTLING_ROUNDS = 4
# The doors are loaded one by one while the command starts: the first connection finds them there, and a command that is
# over soon waits for one module at most.
WARM_UP_AFTER = 0.005
KILLED = 9  # the wait status of a session that ended without telling us its own
SIGTERM, SIGKILL = 15, 9
PATIENCE = 5.0  # seconds between asking a command to end and ending it


class Supervisor:
    """One per session. `exec_errno` is set when the command could not be executed."""

    def __init__(
        self,
        helper: Helper,
        policy: Policy,
        log: AuditLog,
        sockets: dict[str, _socket.socket],
        *,
        resolver: HostResolver,
        pins: list[Pin],
        parent: Parent | None,
        bounds: Bounds,
        reservation: Reservation,
        facts: dict[str, object],
        stderr: int,
        ask: int | None = None,
        watched: WatchedPaths | None = None,
    ) -> None:
        self._helper = helper
        self._policy = policy
        self._log = log
        self._reservation = reservation
        self._facts = facts  # what `netsandbox ps` shows of the session and never changes
        self._stderr = stderr
        own = {door.name for door in reservation.doors()}
        self._own_doors = {name: sock for name, sock in sockets.items() if name in own}
        self._sockets = {name: sock for name, sock in sockets.items() if name not in own}
        self._resolver = resolver
        self._pins = pins
        self._watched = watched
        self._parent = parent
        self._bounds = bounds
        self._loop = Loop(self._failed)
        self._inbox: Inbox | None = None if ask is None else open_inbox(self._loop, log, ask, stderr)
        self._doors: Doors | None = None
        self._listener: Listener | None = None
        self._localhost: LocalhostService | None = None
        self.control: Control | None = None  # closed by our owner, last of all: its end is the session's end
        self._unserved: int | None = None  # the seccomp listener, while nothing has been asked of it
        self._last_moment = 0.0
        self.status = KILLED  # the command's wait status, once it has one
        self.exec_errno = 0
        self.failure: tuple[str, int] | None = None  # a step that failed after the doors stood

    def run(self) -> None:
        """Serve until the command has ended."""
        self._loop.watch(self._helper.channel.fileno(), IN, self._on_channel)
        for sock in self._sockets.values():
            self._loop.watch(sock.fileno(), IN, self._on_first_packet)
        for sock in self._own_doors.values():
            self._loop.watch(sock.fileno(), IN, self._on_own_door)
        self._loop.call_later(WARM_UP_AFTER, self._begin_warm_up)
        try:
            self._loop.run()
        finally:
            self._close()

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._localhost is not None:
            self._localhost.close()
        if self._unserved is not None:
            os.close(self._unserved)
        if self._doors is not None:
            self._doors.close()
        for sock in (*self._sockets.values(), *self._own_doors.values()):
            sock.close()
        self._loop.close()

    def _on_channel(self, events: int) -> None:
        """What goes wrong here is recorded: raised, the loop would watch no longer, and nobody hear of the end."""
        try:
            message = self._helper.receive()
        except OSError:
            self._finish()
            return
        try:
            self._hear(message)
        except Exception as error:
            self._failed(error)

    def _hear(self, message: Message) -> None:
        if message.kind == "L":
            self._listen(message)
        elif message.kind == "X":
            self.exec_errno = message.number
        elif message.kind == "E":
            self.failure = (message.text, message.number)
        elif message.kind == "N":
            self._own_localhost().inner.arrived(message)
        else:
            if message.kind == "S":
                self.status = message.number
            self._finish()

    def _finish(self) -> None:
        self._loop.unwatch(self._helper.channel.fileno())
        self._last_moment = self._loop.now() + MAX_LINGER
        self._linger(self._loop.now() + LINGER_SECONDS, SETTLING_ROUNDS)

    def _linger(self, until: float, rounds: int, moved: int = 0) -> None:
        """What the command did last may still lie in a door's queue, or be on its way through us.

        A few more rounds of the loop take up what is queued: one opens the doors, one accepts, one reads. While bytes
        go to a client of the host there is more time: the command itself would have left them to the kernel.
        """
        now, so_far = self._loop.now(), self._localhost.moved if self._localhost is not None else 0
        if so_far != moved:
            until = min(now + LINGER_SECONDS, self._last_moment)
        if rounds:
            self._loop.call_later(0, lambda: self._linger(until, rounds - 1, so_far))
        elif self._flows() == 0 or now >= until:
            self._loop.stop()
        else:
            self._loop.call_later(0.005, lambda: self._linger(until, 0, so_far))

    def _listen(self, message: Message) -> None:
        if self._unserved is not None or self._listener is not None or len(message.descriptors) != 1:
            raise OSError("the helper sent a listener that was not expected")
        fd = self._unserved = message.descriptors[0]
        self._loop.watch(fd, IN, lambda events: self._on_notification(fd, events))

    def _on_notification(self, fd: int, events: int) -> None:
        self._loop.unwatch(fd)
        if not events & IN:  # the last process under the filter is gone
            return
        self._unserved = None
        try:
            self._listener = self._open_listener(fd)
        except BaseException:
            os.close(fd)  # a trapped call fails at once instead of waiting for an answer that cannot come
            raise
        self._listener.serve(IN)

    def _open_listener(self, fd: int) -> Listener:
        from netsandbox.audit.folding import FoldedRecords
        from netsandbox.backends.namespaces.seccomp_notify import Listener

        repeats = FoldedRecords(self._log)
        listener = Listener(self._loop, fd, repeats)
        settings = self._reservation.settings
        if self._watched is not None:
            from netsandbox.backends.namespaces.file_watch import FileWatch

            listener.takers.append(FileWatch(listener, self._log, self._watched))
        if self._pins or settings.guarded:
            from netsandbox.backends.namespaces.syscall_broker import Broker

            listener.takers.append(
                Broker(
                    listener, repeats, unix=self._unix_judge(listener, repeats), guard=self._guard(listener, repeats)
                )
            )
        if settings.publishes and not settings.guarded:
            from netsandbox.backends.namespaces.listen_watch import Listening

            localhost = self._own_localhost()
            listener.takers.append(Listening(self._loop, listener, localhost.sockets, localhost.heard))
        return listener

    def _unix_judge(self, listener: Listener, repeats: FoldedRecords) -> UnixConnect | None:
        if not self._pins:
            return None
        from netsandbox.backends.namespaces.unix_connect import UnixConnect

        return UnixConnect(listener, repeats, self._pins)

    def _guard(self, listener: Listener, repeats: FoldedRecords) -> BindGuard | None:
        if not self._reservation.settings.guarded:
            return None
        from netsandbox.backends.namespaces.bind_guard import BindGuard

        localhost = self._own_localhost()

        def heard(address: str, port: int, pid: int, exe: str) -> None:  # after the call has been answered
            self._loop.call_later(0, lambda: localhost.heard(address, port, pid, exe))

        return BindGuard(listener, repeats, localhost.rule, heard, localhost.refused)

    def _on_own_door(self, events: int) -> None:
        self._own_localhost()

    def _own_localhost(self) -> LocalhostService:
        """Made when it is first wanted: by a listener, a connection to one of its doors, or a question about it."""
        if self._localhost is None:
            for sock in self._own_doors.values():
                self._loop.unwatch(sock.fileno())
            from netsandbox_portmap.localhost_service import LocalhostService

            self._localhost = LocalhostService(
                self._loop, self._helper, self._log, self._reservation, self._own_doors, stderr=self._stderr
            )
            self._own_doors = {}
        return self._localhost

    def _begin_warm_up(self) -> None:
        try:
            self.control = open_control(self._loop, self._facts, self._status, self._stop, self._inbox)
        finally:
            self._warm_up(0)

    def _status(self) -> dict[str, object]:
        facts = {**self._facts, "name": self._reservation.name}
        ports = self._localhost.status() if self._localhost is not None else []
        return status_of(facts, self._log, self._inbox, init=self._helper.pid, flows=self._flows(), ports=ports)

    def _stop(self) -> None:
        """`netsandbox stop`: ask the command to end, and end it when it does not."""
        self._helper.signal(SIGTERM)
        self._loop.call_later(PATIENCE, lambda: self._helper.signal(SIGKILL))

    def _flows(self) -> int:
        doors = self._doors.flows if self._doors is not None else 0
        return doors + (self._localhost.flows if self._localhost is not None else 0)

    def _warm_up(self, number: int) -> None:
        if self._doors is None and number < len(DOORS):
            __import__(DOORS[number])
            self._loop.call_later(0, lambda: self._warm_up(number + 1))

    def _on_first_packet(self, events: int) -> None:
        for sock in self._sockets.values():
            self._loop.unwatch(sock.fileno())
        try:
            self._doors = self._open_doors()
        except BaseException:
            for sock in self._sockets.values():  # what cannot be served is refused, not kept waiting
                sock.close()
            raise

    def _open_doors(self) -> Doors:
        from netsandbox.session.doors import Doors

        return Doors(
            self._loop,
            self._policy,
            self._log,
            self._resolver,
            self._sockets,
            init=self._helper.pid,
            parent=self._parent,
            bounds=self._bounds,
            inbox=self._inbox,
        )

    def _failed(self, error: BaseException) -> None:
        self._log.write("policy", verdict="deny", reason="internal", detail=repr(error))


def open_control(
    loop: Loop,
    facts: dict[str, object],
    status: Callable[[], dict[str, object]],
    stop: Callable[[], None],
    inbox: Inbox | None,
) -> Control:
    """Where the session is asked, stopped and, if it asks itself, answered."""
    from netsandbox.session.control import Control

    return Control(loop, str(facts["control"]), status, stop, inbox.hear if inbox is not None else None)


def status_of(
    facts: dict[str, object],
    log: AuditLog,
    inbox: Inbox | None,
    *,
    init: int,
    flows: int,
    ports: list[dict[str, object]],
) -> dict[str, object]:
    """What `ps` is told: what never changes of a session, and what does."""
    return {
        **facts,
        "init": init,
        "allowed": log.total("allow"),
        "denied": log.total("deny"),
        "flows": flows,
        "ports": ports,
        "pending": inbox.status() if inbox is not None else [],
    }


def open_inbox(loop: Loop, log: AuditLog, wait: int, stderr: int) -> Inbox:
    """Where a session that asks keeps its questions."""
    from netsandbox.runtime import stderr_notice
    from netsandbox.session.approvals.inbox import Inbox

    return Inbox(log, wait, clock=loop.now, later=loop.call_later, say=lambda text: stderr_notice.say(stderr, text))
