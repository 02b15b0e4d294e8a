"""Answers the system calls that the seccomp filter traps (seccomp_unotify(2)).

A call for a socket outside the allow list is denied and recorded; its arguments are plain numbers, so nothing can
change between the check and the answer. Calls that depend on what their arguments point at go to the broker. Calls that
are only observed go to `listen_watch`; only it answers CONTINUE, since it decides nothing. If we die, the calls fail
with ENOSYS. In a session whose files are observed, a native process receives the calls first and passes these on
(`trap_relay`).
"""

from __future__ import annotations

import _struct
import errno
import fcntl
import os

from netsandbox.backends.linux.seccomp import AF_UNIX
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from netsandbox.audit.folding import FoldedRecords
    from netsandbox.backends.linux.trap_relay import TrapRelay
    from netsandbox.runtime.loop import Loop

    class Taker(Protocol):
        """Answers the calls that it takes."""

        def takes(self, call: TrappedCall) -> bool: ...

        def serve(self, call: TrappedCall) -> None: ...

        def close(self) -> None: ...


# linux/seccomp.h
NOTIF_RECV, NOTIF_SEND, NOTIF_ID_VALID, NOTIF_ADDFD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
NOTIFICATION = _struct.Struct("=QIIiIQ6Q")
RESPONSE = _struct.Struct("=QqiI")
ADDFD_SEND = 2  # SECCOMP_ADDFD_FLAG_SEND, Linux 5.14
CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
IN = 1  # EPOLLIN

FAMILIES = {
    0: "unspec",
    1: "unix",
    2: "inet",
    10: "inet6",
    16: "netlink",
    17: "packet",
    21: "rds",
    29: "can",
    30: "tipc",
    31: "bluetooth",
    38: "alg",
    40: "vsock",
    41: "kcm",
    42: "qipcrtr",
    43: "smc",
    44: "xdp",
}
TYPES = {1: "stream", 2: "dgram", 3: "raw", 4: "rdm", 5: "seqpacket", 6: "dccp", 10: "packet"}


class TrappedCall:
    """One trapped system call. `pid` is the caller's on the host."""

    __slots__ = ("arguments", "id", "number", "pid")

    def __init__(self, data: bytes) -> None:
        self.id, self.pid, _, self.number, _, _, *self.arguments = NOTIFICATION.unpack(data)


class Listener:
    """Serves the listener's descriptor until the session ends. A call that none of *takers* takes is denied. With a
    *relay* the calls arrive there."""

    def __init__(self, loop: Loop, fd: int, repeats: FoldedRecords, relay: TrapRelay | None = None) -> None:
        self._loop = loop
        self._fd = fd
        self._repeats = repeats
        self._relay = relay
        self._watched = fd if relay is None else relay.fileno()
        self.takers: list[Taker] = []
        loop.watch(self._watched, IN, self.serve)

    def serve(self, events: int) -> None:
        if not events & IN:  # the last process under the filter is gone; a receive would block forever
            return self._loop.unwatch(self._watched)
        call = self._receive()
        if call is None:
            return None
        try:
            for taker in self.takers:
                if taker.takes(call):
                    return taker.serve(call)
            number = self._refuse_socket(call)
        except Exception as error:  # any error here is a denial
            number = errno.EPERM
            self._confess(call, error)
        self.answer(call, error=number)
        return None

    def _confess(self, call: TrappedCall, error: Exception) -> None:
        try:
            self._repeats.note(
                call.pid, verdict="deny", reason=reasons.INTERNAL, door="seccomp", detail=repr(error), call=call.number
            )
        except Exception:  # the log itself may have failed
            return

    def answer(self, call: TrappedCall, *, value: int = 0, error: int = 0) -> bool:
        """Return *value* from the call, or fail it with *error*. False if the caller was killed or interrupted."""
        try:
            fcntl.ioctl(self._fd, NOTIF_SEND, RESPONSE.pack(call.id, value, -error, 0))
        except (OSError, ValueError):  # ValueError: a thread of the broker answers after `close`
            return False
        return True

    def let_go_on(self, call: TrappedCall) -> None:
        """Let the kernel make the call. Only for calls about which nothing is decided."""
        try:
            fcntl.ioctl(self._fd, NOTIF_SEND, RESPONSE.pack(call.id, 0, 0, CONTINUE))
        except OSError:  # the caller is gone
            pass

    def hand_over(self, call: TrappedCall, fd: int, flags: int) -> bool:
        """Return a copy of our descriptor *fd* from the call; *flags*: O_CLOEXEC or 0. False if the caller is gone."""
        try:
            fcntl.ioctl(self._fd, NOTIF_ADDFD, _struct.pack("=QIIII", call.id, ADDFD_SEND, fd, 0, flags))
        except OSError:
            return self.answer(call, error=errno.EACCES) and False
        return True

    def is_valid(self, call: TrappedCall) -> bool:
        """Whether the caller still waits; only then the data read from its process is its own."""
        try:
            fcntl.ioctl(self._fd, NOTIF_ID_VALID, _struct.pack("=Q", call.id))
        except OSError:
            return False
        return True

    def settle(self) -> None:
        """Write the folded records, and go on."""
        if self._relay is not None:
            self._relay.refusals.settle()
        self._repeats.flush()

    def close(self) -> None:
        """Write the folded records. Every later call fails, since we no longer answer."""
        self._loop.unwatch(self._watched)
        for taker in self.takers:
            taker.close()
        if self._relay is not None:
            self._relay.close()
        self._repeats.flush()
        os.close(self._fd)
        self._fd = -1

    def _receive(self) -> TrappedCall | None:
        if self._relay is not None:
            data = self._relay.receive()
            return None if data is None else TrappedCall(data)
        buffer = bytearray(NOTIFICATION.size)
        try:
            fcntl.ioctl(self._fd, NOTIF_RECV, buffer)
        except OSError as error:
            if error.errno != errno.ENOENT:  # ENOENT: the caller died before we received the call
                self._loop.unwatch(self._fd)
            return None
        return TrappedCall(bytes(buffer))

    def _refuse_socket(self, call: TrappedCall) -> int:
        """Record and deny."""
        family, kind, protocol = (argument & 0xFFFFFFFF for argument in call.arguments[:3])
        self._repeats.note(
            call.pid,
            verdict="deny",
            reason=reasons.UNIX_SOCKET if family == AF_UNIX else reasons.SOCKET_FAMILY,
            door="seccomp",
            exe=self.exe_of(call),
            family=FAMILIES.get(family, str(family)),
            type=TYPES.get(kind & 0xF, str(kind & 0xF)),
            protocol=protocol,
        )
        return errno.ESOCKTNOSUPPORT if family == AF_UNIX else errno.EPERM

    def exe_of(self, call: TrappedCall) -> str:
        """The calling program's path on this host."""
        try:
            exe = os.readlink(f"/proc/{call.pid}/exe")
        except OSError:
            return "?"
        return exe if self.is_valid(call) else "?"
