"""Serves one session of a Mac: its door, its window, its control socket, until the command has ended.

When it dies the door is gone, and with it every way out, and the helper's watcher ends the command (INV-10); when one
of its handlers fails, that connection is refused and the failure recorded (INV-1).
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.doors import MacDoors
from netsandbox.backends.seatbelt.localhost import MacLocalhost
from netsandbox.backends.seatbelt.refusal_records import RefusalRecords
from netsandbox.errors import HostError
from netsandbox.runtime.descriptor_limit import raise_descriptor_limit
from netsandbox.runtime.loop import IN
from netsandbox.session.supervisor import (
    KILLED,
    LINGER_SECONDS,
    PATIENCE,
    SETTLING_ROUNDS,
    SIGTERM,
    open_control,
    open_inbox,
    status_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.seatbelt.exit_watch import ExitNotice
    from netsandbox.backends.seatbelt.helper_process import HelperProcess
    from netsandbox.backends.seatbelt.mac_system import System
    from netsandbox.backends.seatbelt.reservation import MacReservation
    from netsandbox.policy.policy import Policy
    from netsandbox.session.approvals.inbox import Inbox
    from netsandbox.session.control import Control
    from netsandbox.session.host_resolver import HostResolver
    from netsandbox.settings import Bounds


class MacSupervisor:
    """Made before the command runs, so that everything it serves with stands then. `status` is a wait status."""

    def __init__(
        self,
        system: System,
        policy: Policy,
        log: AuditLog,
        reservation: MacReservation,
        *,
        tag: str,
        resolver: HostResolver,
        parent: Parent | None,
        bounds: Bounds,
        facts: dict[str, object],
        stderr: int,
        ask: int | None = None,
    ) -> None:
        self._system = system
        self._log = log
        self._facts = facts
        self._loop = loop = system.open_loop(self._failed)
        self._inbox: Inbox | None = None if ask is None else open_inbox(loop, log, ask, stderr)
        self._applied: HelperProcess | None = None
        self._exit: ExitNotice | None = None
        self._doors: MacDoors | None = None
        self._localhost: MacLocalhost | None = None
        self._refusals: RefusalRecords | None = None
        self.control: Control | None = None  # closed by our owner, last of all: its end is the session's end
        self._is_over = False
        self.status = KILLED
        try:
            self._refusals = RefusalRecords(loop, log, system.log, tag, closed_port=reservation.closed.port)
            if reservation.mixed is not None and reservation.dns is not None:
                own = system.own_addresses(loop.now)
                own()  # while the command can do nothing against it
                self._doors = MacDoors(
                    loop,
                    policy,
                    log,
                    resolver,
                    reservation.mixed,
                    reservation.dns,
                    token=reservation.token,
                    own=own,
                    parent=parent,
                    bounds=bounds,
                    inbox=self._inbox,
                )
            if reservation.map is not None:
                self._localhost = MacLocalhost(loop, log, reservation, stderr=stderr)
            self._open_control()
        except BaseException:
            self.close()
            raise

    def _open_control(self) -> None:
        """Without it `ps` and `stop` do not know the session, which runs all the same."""
        try:
            self.control = open_control(self._loop, self._facts, self._status, self._stop, self._inbox)
        except HostError as error:
            self._failed(error)

    def settle(self) -> None:
        """Before the command starts: what it is refused first is to be told as well."""
        if self._refusals is not None:
            self._refusals.wait()

    def run(self, applied: HelperProcess) -> None:
        """Serve until the command has ended."""
        self._applied = applied
        raise_descriptor_limit()
        self._exit = self._system.exit_of(applied.pid)
        self._loop.watch(self._exit.fileno(), IN, self._on_exit)
        self._loop.call_later(0, lambda: self._on_exit(0))  # it may have ended before the kernel was asked to tell
        self._loop.run()

    def close(self) -> None:
        for part in (self._doors, self._localhost, self._refusals, self._exit):
            if part is not None:
                part.close()
        self._loop.close()

    def _on_exit(self, events: int) -> None:
        assert self._applied is not None
        assert self._exit is not None
        status = None if self._is_over else self._applied.status()
        if status is None:
            return
        self._is_over = True
        self._loop.unwatch(self._exit.fileno())
        self.status = status
        self._linger(self._loop.now() + LINGER_SECONDS, SETTLING_ROUNDS)

    def _linger(self, until: float, rounds: int) -> None:
        """What the command did last may still lie in the door's queue, or be on its way through us or the log."""
        if rounds:
            self._loop.call_later(0, lambda: self._linger(until, rounds - 1))
        elif not self._is_awaited() or self._loop.now() >= until:
            self._loop.stop()
        else:
            self._loop.call_later(0.005, lambda: self._linger(until, 0))

    def _is_awaited(self) -> bool:
        return self._flows() > 0 or (self._refusals is not None and self._refusals.awaited(self.status))

    def _status(self) -> dict[str, object]:
        init = self._applied.pid if self._applied is not None else 0
        ports = self._localhost.status() if self._localhost is not None else []
        return status_of(self._facts, self._log, self._inbox, init=init, flows=self._flows(), ports=ports)

    def _stop(self) -> None:
        """`netsandbox stop`: ask the command to end, and end it when it does not."""
        applied = self._applied
        if applied is not None:
            applied.send(SIGTERM)
            self._loop.call_later(PATIENCE, applied.end)

    def _flows(self) -> int:
        return self._doors.flows if self._doors is not None else 0

    def _failed(self, error: BaseException) -> None:
        self._log.write("policy", verdict="deny", reason="internal", detail=repr(error))
