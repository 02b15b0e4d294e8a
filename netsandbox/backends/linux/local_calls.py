"""Connects and binds that the session's own loopback refused, as the native broker tells them (native/local_calls.h).

A program that finds nothing at its localhost may have meant a server of the host. It is told only where that server
listens at that moment, and only if the same port of the session does not answer later: programs poll a server that
starts. Nothing is decided here; the kernel has refused already.
"""

from __future__ import annotations

import _struct
import os
import time

from netsandbox.backends.linux.socket_diag import host_listeners
from netsandbox.policy import reasons
from netsandbox.runtime.inherited import write_notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.localhost_settings import LocalhostSettings

    from netsandbox.audit.log import AuditLog

CALL = _struct.Struct("=iIHBx")  # struct local_call
REFUSED, CONNECTED, TAKEN = b"rct"
HOLD = 30.0  # seconds until a refusal is recorded, unless the port answers first
MAX_PORTS = 32
FRESH = 0.5  # seconds for which the list of the host's listeners is used again: a command may try every port


class LocalCalls:
    """One per session. A bind to a port of --connect-host gets a notice at once. The gateway's port is never told: an
    option that opens it opens the servers of all sessions."""

    def __init__(
        self,
        log: AuditLog,
        call_later: Callable[[float, Callable[[], None]], object],
        settings: LocalhostSettings,
        stderr: int,
    ) -> None:
        self._log = log
        self._call_later = call_later
        self._doors = {door.inside: door for door in settings.connect_host}
        self._stderr = stderr
        self._held: dict[int, dict[str, object]] = {}  # what will be recorded, by port
        self._recorded = {settings.gateway_port}
        self._listeners: tuple[float, set[int]] = (-FRESH, set())

    def take(self, data: bytes) -> None:
        """*data* is a message without its first byte."""
        pid, times, port, kind = CALL.unpack_from(data)
        if kind == TAKEN:
            self._on_taken(port)
        elif kind == CONNECTED:
            self._held.pop(port, None)
        elif port in self._held:
            self._held[port]["count"] = times
        elif self._is_told(port):
            exe = os.fsdecode(data[CALL.size :].rstrip(b"\0")) or "?"
            self._held[port] = {"pid": pid, "exe": exe, "count": times}
            self._call_later(HOLD, lambda: self._record(port))

    def close(self) -> None:
        for port in tuple(self._held):
            self._record(port)

    def _is_told(self, port: int) -> bool:
        has_room = len(self._held) + len(self._recorded) <= MAX_PORTS  # one of these is the gateway's
        return has_room and port not in self._recorded and port in self._host_listeners()

    def _on_taken(self, port: int) -> None:
        door = self._doors.pop(port, None)
        if door is not None:
            what = f"port {port} of this session leads to {door.owner} (--connect-host {door})"
            write_notice(self._stderr, f"{what}; leave that out to let the command listen there")

    def _record(self, port: int) -> None:
        fields = self._held.pop(port, None)
        if fields is None:
            return
        self._recorded.add(port)
        denied = {"verdict": "deny", "reason": reasons.OWN_LOCALHOST, "door": "seccomp"}
        self._log.write("egress", **denied, host="localhost", port=port, hint=f"--connect-host {port}", **fields)

    def _host_listeners(self) -> set[int]:
        now = time.monotonic()
        if now - self._listeners[0] >= FRESH:
            try:
                self._listeners = now, host_listeners()
            except (OSError, ValueError):  # the kernel does not tell, so nothing is told
                self._listeners = now, set()
        return self._listeners[1]
