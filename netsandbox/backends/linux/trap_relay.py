"""Messages of the native process that receives the trapped calls where files are observed (native/traps.h).

It continues calls on files by itself and reports those that are refused. It makes connect and bind calls by itself, and
waits for our decision where a socket is not the session's own. Other calls arrive here, to be answered. Its end is the
session's end: without it a trapped call waits, so the session is killed (INV-1).
"""

from __future__ import annotations

import _socket
import _struct
import errno
import sys

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Refusals(Protocol):
        def take(self, refusal: FileRefusal) -> None: ...

        def made(self, path: str) -> None: ...

        def left_out(self, count: int) -> None: ...

        def settle(self) -> None: ...

        def close(self) -> None: ...


MAX_MESSAGE = 3 * 4096
HEADER = 12  # struct refusal
QUESTION = _struct.Struct("=QQQiiBBB5x")  # struct question of native/sockets.h
REPLY = _struct.Struct("=Qi4x")
CALL = 80  # struct seccomp_notif
MAX_DRAINED = 100_000  # messages after the end of the command


@frozen
class FileRefusal:
    """One refused call on a file. `why` is `h` for a path that the session does not see, `r` for a read-only one.
    `does` is a letter of native/traps.h."""

    why: str
    does: str
    call: int
    pid: int
    times: int
    exe: str
    path: str


def read_refusal(data: bytes) -> FileRefusal:
    """*data* is a message without its first byte. ValueError: it is none."""
    exe, end, path = data[HEADER:].partition(b"\0")
    if not end or not path.startswith(b"/") or not path.endswith(b"\0"):
        raise ValueError("a report of the observer cannot be read")
    why, does, call = chr(data[0]), chr(data[1]), int.from_bytes(data[2:4], sys.byteorder)
    pid, times = (int.from_bytes(data[at : at + 4], sys.byteorder) for at in (4, 8))
    return FileRefusal(why, does, call, pid, times, _text(exe), _text(path[:-1]))


@frozen
class SocketQuestion:
    """A connect or bind that the native broker does not make by itself. `kind` is a letter of native/sockets.h; `error`
    is the errno that the kernel would give, or that the look into the caller gave."""

    id: int
    device: int
    inode: int
    pid: int
    error: int
    kind: str
    type: int
    binds: bool
    exe: str
    path: str  # empty: not a path


def read_question(data: bytes) -> SocketQuestion:
    """*data* is a message without its first byte. ValueError: it is none."""
    exe, end, path = data[QUESTION.size :].partition(b"\0")
    if not end or not path.endswith(b"\0"):
        raise ValueError("a question of the broker cannot be read")
    number, device, inode, pid, error, kind, of_type, binds = QUESTION.unpack_from(data)
    return SocketQuestion(
        number, device, inode, pid, error, chr(kind), of_type, bool(binds), _text(exe) or "?", _text(path[:-1])
    )


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


class TrapRelay:
    """The supervisor's end of the socket. *decide* returns 0 or the errno for a question. *lost* is called once if the
    process ends before the session."""

    def __init__(
        self,
        sock: _socket.socket,
        refusals: Refusals,
        decide: Callable[[SocketQuestion], int],
        lost: Callable[[], None],
    ) -> None:
        self.held: Callable[[bytes], None] | None = None  # takes a refused call that waits for the user
        self.local: Callable[[bytes], None] | None = None  # takes a call that the session's own loopback refused
        self.refusals = refusals
        self._sock = sock
        self._decide = decide
        self._lost = lost

    def fileno(self) -> int:
        return self._sock.fileno()

    def receive(self) -> bytes | None:
        """The next call to answer; None if the message was another one, or there is none."""
        try:
            data = self._sock.recv(MAX_MESSAGE, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            self._lost()
            return None
        if data[:1] == b"T":
            return data[1:]
        if data[:1] == b"Q":
            self._reply(data[1:])
        else:
            self._report(data)
        return None

    def _reply(self, data: bytes) -> None:
        """The broker waits for this answer, so there is always one; without a decision it is a refusal."""
        number = errno.EACCES
        try:
            number = self._decide(read_question(data))
        except Exception:  # a refusal without its record
            self.refusals.left_out(1)
        try:
            self._sock.send(REPLY.pack(int.from_bytes(data[:8], sys.byteorder), number))
        except OSError:  # the process is gone, which the next message shows
            pass

    def _report(self, data: bytes) -> None:
        try:
            if data[:1] == b"A":
                if self.held is not None:
                    self.held(data[1:])
                else:  # the command has ended
                    self.refusals.take(read_refusal(data[1 + CALL :]))
            elif data[:1] == b"F":
                self.refusals.take(read_refusal(data[1:]))
            elif data[:1] == b"L":
                if self.local is not None:
                    self.local(data[1:])
            elif data[:1] == b"M":
                self.refusals.made(_text(data[1:-1]))
            else:
                self.refusals.left_out(int.from_bytes(data[1:5], sys.byteorder))
        except Exception:  # the call is refused with or without its record
            self.refusals.left_out(1)

    def close(self) -> None:
        """Record what was reported before the command ended; calls that wait are gone with it."""
        self.held = None
        for _ in range(MAX_DRAINED):
            try:
                data = self._sock.recv(MAX_MESSAGE, _socket.MSG_DONTWAIT)
            except OSError:
                break
            if not data:
                break
            if data[:1] not in (b"T", b"Q"):
                self._report(data)
        self.refusals.close()
