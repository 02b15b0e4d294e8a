"""Serves one session from outside: waits for the command, and opens the doors on the first packet.

It stands in the host's network, holds the policy and the log, and is the only way out of the session. When it dies the
kernel kills the session (INV-10); when one of its handlers fails, that connection is refused and the failure recorded,
never let through (INV-1).
"""

from __future__ import annotations

import _socket
import os

from netsandbox.loop import IN, Loop
from netsandbox.sealing import DOORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.contract import Parent

    from netsandbox.audit.log import AuditLog
    from netsandbox.doors import Doors
    from netsandbox.host_resolver import HostResolver
    from netsandbox.linux.launch import Helper, Message
    from netsandbox.linux.notify import Listener
    from netsandbox.linux.unix_pins import Pin
    from netsandbox.policy.policy import Policy

LINGER_SECONDS = 0.25
SETTLING_ROUNDS = 4
# The doors are loaded one by one while the command starts: the first connection finds them there, and a command that is
# over soon waits for one module at most.
WARM_UP_AFTER = 0.005
KILLED = 9  # the wait status of a session that ended without telling us its own


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
        pins: tuple[Pin, ...],
        parent: Parent | None,
    ) -> None:
        self._helper = helper
        self._policy = policy
        self._log = log
        self._sockets = sockets
        self._resolver = resolver
        self._pins = pins
        self._parent = parent
        self._loop = Loop(self._failed)
        self._doors: Doors | None = None
        self._listener: Listener | None = None
        self._unserved: int | None = None  # the seccomp listener, while nothing has been asked of it
        self.status = KILLED  # the command's wait status, once it has one
        self.exec_errno = 0
        self.failure: tuple[str, int] | None = None  # a step that failed after the doors stood

    def run(self) -> None:
        """Serve until the command has ended."""
        self._loop.watch(self._helper.channel.fileno(), IN, self._on_channel)
        for sock in self._sockets.values():
            self._loop.watch(sock.fileno(), IN, self._on_first_packet)
        self._loop.call_later(WARM_UP_AFTER, lambda: self._warm_up(0))
        try:
            self._loop.run()
        finally:
            self._close()

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._unserved is not None:
            os.close(self._unserved)
        if self._doors is not None:
            self._doors.close()
        for sock in self._sockets.values():
            sock.close()
        self._loop.close()

    def _on_channel(self, events: int) -> None:
        message = self._helper.receive()
        if message.kind == "L":
            self._listen(message)
        elif message.kind == "X":
            self.exec_errno = message.number
        elif message.kind == "E":
            self.failure = (message.text, message.number)
        else:
            if message.kind == "S":
                self.status = message.number
            self._loop.unwatch(self._helper.channel.fileno())
            self._linger(self._loop.now() + LINGER_SECONDS, SETTLING_ROUNDS)

    def _linger(self, until: float, rounds: int) -> None:
        """What the command did last may still lie in a door's queue, or be on its way through us.

        A few more rounds of the loop take up what is queued: one opens the doors, one accepts, one reads.
        """
        if rounds:
            self._loop.call_later(0, lambda: self._linger(until, rounds - 1))
        elif self._doors is None or self._doors.flows == 0 or self._loop.now() >= until:
            self._loop.stop()
        else:
            self._loop.call_later(0.005, lambda: self._linger(until, 0))

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
            from netsandbox.linux.notify import Listener

            self._listener = Listener(self._loop, fd, self._log, self._pins)
        except BaseException:
            os.close(fd)  # a trapped call fails at once instead of waiting for an answer that cannot come
            raise
        self._listener.serve(IN)

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
        from netsandbox.doors import Doors

        return Doors(
            self._loop,
            self._policy,
            self._log,
            self._resolver,
            self._sockets,
            init=self._helper.pid,
            parent=self._parent,
        )

    def _failed(self, error: BaseException) -> None:
        self._log.write("policy", verdict="deny", reason="internal", detail=repr(error))
