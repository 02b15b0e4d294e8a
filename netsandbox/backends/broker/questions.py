"""The broker's questions and the supervisor's answers (native/questions.h).

The broker waits for each answer, so there always is one: without a decision it is a refusal (INV-1). The end of the
relay is the end of the broker, and so of the session.
"""

from __future__ import annotations

import _socket
import _struct
import errno
import os

from netsandbox.backends.broker.arrivals import MAPPED, address_text
from netsandbox.backends.linux.seccomp_notify import FAMILIES, TYPES
from netsandbox.backends.linux.trap_relay import SocketQuestion
from netsandbox.policy import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from netsandbox.audit.folding import FoldedRecords

    class Localhost(Protocol):
        """Decides about the ports of the session's localhost."""

        def place(self, pid: int, exe: str, address: str, port: int, protocol: str) -> tuple[int, str, int]: ...

        def listening(self, address: str, port: int, pid: int, exe: str) -> None: ...


QUESTION = _struct.Struct("=QQQ16sHxx16sHxxiiiBBBB")  # struct question
VERDICT = _struct.Struct("=Qi16sHxx")  # struct verdict
MAX_MESSAGE = 2 * 4096 + 512
AF_UNIX = 1
BIND, FAMILY = "bf"


class Questions:
    """The supervisor's end of the relay. *lost* is called once if the broker ends before the session."""

    def __init__(
        self,
        sock: _socket.socket,
        repeats: FoldedRecords,
        localhost: Callable[[], Localhost],
        unix: Callable[[SocketQuestion], int],
        lost: Callable[[], None],
    ) -> None:
        self._sock = sock
        self._repeats = repeats
        self._localhost = localhost
        self._unix = unix
        self._lost = lost
        self.local_call: Callable[[bytes], None] | None = None  # takes a call that failed at the session's localhost

    def serve(self, events: int) -> None:
        """Handle what has arrived."""
        while True:
            try:
                data = self._sock.recv(MAX_MESSAGE, _socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lost()
                return
            self._handle(data)

    def _handle(self, data: bytes) -> None:
        if data[:1] == b"Q":
            self._answer(data[1:])
        elif data[:1] == b"L":
            self._listens(data[1:])
        elif data[:1] == b"C" and self.local_call is not None:
            self.local_call(data[1:])

    def _answer(self, data: bytes) -> None:
        number, address, port = errno.EACCES, bytes(16), 0
        try:
            number, address, port = self._decide(data)
        except Exception as error:  # a refusal
            self._confess(error)
        try:
            self._sock.send(VERDICT.pack(int.from_bytes(data[:8], "little"), number, address, port))
        except OSError:  # the broker is gone, which the next message shows
            pass

    def _decide(self, data: bytes) -> tuple[int, bytes, int]:
        """The errno, and where a bound socket is on this host."""
        id, device, inode, asked, port, _, _, pid, error, protocol, kind, family, of_type, binds = QUESTION.unpack_from(
            data
        )
        exe, path = _texts(data[QUESTION.size :])
        if chr(kind) == BIND and of_type == _socket.SOCK_DGRAM:
            return self._refuse_datagrams(pid, exe, address_text(asked), port), bytes(16), 0
        if chr(kind) == BIND:
            number, address, actual = self._localhost().place(pid, exe, address_text(asked), port, "tcp")
            return number, MAPPED + _socket.inet_aton(address), actual
        if chr(kind) == FAMILY:
            return self._refuse_family(pid, exe, family, of_type, protocol), bytes(16), 0
        question = SocketQuestion(id, device, inode, pid, error, chr(kind), of_type, bool(binds), exe or "?", path)
        return self._unix(question), bytes(16), 0

    def _refuse_family(self, pid: int, exe: str, family: int, of_type: int, protocol: int) -> int:
        self._repeats.note(
            pid,
            verdict="deny",
            reason=reasons.UNIX_SOCKET if family == AF_UNIX else reasons.SOCKET_FAMILY,
            door="seccomp",
            exe=exe,
            family=FAMILIES.get(family, str(family)),
            type=TYPES.get(of_type, str(of_type)),
            protocol=protocol,
        )
        return errno.ESOCKTNOSUPPORT if family == AF_UNIX else errno.EPERM

    def _refuse_datagrams(self, pid: int, exe: str, address: str, port: int) -> int:
        """A server for UDP, to which nothing leads."""
        fields = {"address": address, "port": port, "protocol": "udp", "exe": exe}
        self._repeats.note(pid, event="bind", verdict="deny", reason=reasons.UDP, door="seccomp", **fields)
        return errno.EACCES

    def _listens(self, data: bytes) -> None:
        *_, actual, port, pid, _, _, _, _, _, _ = QUESTION.unpack_from(data)
        exe, _ = _texts(data[QUESTION.size :])
        try:
            self._localhost().listening(address_text(actual), port, pid, exe)
        except Exception as error:  # it is not published
            self._confess(error)

    def _confess(self, error: Exception) -> None:
        try:
            self._repeats.note(0, verdict="deny", reason=reasons.INTERNAL, door="seccomp", detail=repr(error))
        except Exception:  # the log itself may have failed
            return


def _texts(data: bytes) -> tuple[str, str]:
    """The program and the path of a message."""
    exe, _, rest = data.partition(b"\0")
    return os.fsdecode(exe), os.fsdecode(rest.partition(b"\0")[0])
