"""Requests of `netsandbox exec`: to start a second command in a running session.

    client ─ EXEC and one end of a socket pair ─► control socket ─► checks, record ─► backend.execute ─► spawner
    client ◄───────────── the rest, over the socket pair (backends/linux/native/spawner.h) ──────────────►

The request waits in that socket already: struct spawn_request of spawner.h, then the folder (empty: the session's), a
variable (empty, or TERM) and the words of the command, each with NUL; with it come the descriptors 0, 1 and 2.

Rules kept here:
1. No descriptor leads out of the session (`inherited.check_stdio`), and none is a terminal of the host: a hostile first
   command could take it from the second one and read what the user types long after that has ended. A second command
   gets a terminal of the session's own.
2. The record is written before the command starts; without a record there is no command (INV-5).
"""

from __future__ import annotations

import _socket
import _struct
import os

from netsandbox.errors import HostError, NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.runtime.control_socket import receive_descriptors
from netsandbox.runtime.inherited import check_stdio
from netsandbox.session.control import DONE, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from netsandbox.backends.contract import Backend, SessionContext

HEADER = _struct.Struct("=6H")  # which descriptors are a terminal, nothing, the terminal's rows and columns and pixels
MAX_REQUEST, MAX_WORDS = 131072, 65536  # MAX_SPAWN and MAX_WORDS of spawner.h


@frozen
class ExecRequest:
    terminal: int  # bit N: descriptor N is a new terminal
    folder: str
    variable: str
    words: Sequence[str]

    def packed(self, size: tuple[int, int]) -> bytes:
        """*size*: rows and columns."""
        texts = [os.fsencode(text) + b"\0" for text in (self.folder, self.variable, *self.words)]
        return HEADER.pack(self.terminal, 0, *size, 0, 0) + b"".join(texts)


def parse_request(data: bytes) -> ExecRequest:
    """ValueError: *data* is not a request."""
    if len(data) <= HEADER.size or not data.endswith(b"\0"):
        raise ValueError("the request is not whole")
    folder, variable, *words = [os.fsdecode(text) for text in data[HEADER.size : -1].split(b"\0")]
    terminal = HEADER.unpack_from(data)[0]
    if len(words) + 2 > MAX_WORDS:
        raise ValueError("the request has too many words")
    if not words or not words[0] or terminal > 7 or (variable and not variable.startswith("TERM=")):
        raise ValueError("the request has no command, or asks for what is not known")
    return ExecRequest(terminal, folder, variable, words)


class ExecRequests:
    """Handles the requests of one session."""

    def __init__(self, backend: Backend, context: SessionContext) -> None:
        self._backend = backend
        self._context = context

    def handle(self, passed: list[int], pid: int, uid: int) -> bytes:
        """The reply to the client *pid* of the user *uid*. *passed* is the end of its socket pair; it is closed
        here."""
        opened = list(passed)
        try:
            if len(passed) != 1:
                raise HostError("the request came without its socket; use `netsandbox exec` of the same version")
            data, standard = _read(passed[0])
            opened += standard
            self._start(data, [*passed, *standard], pid, uid)
        except NetsandboxError as error:
            return encode({"error": str(error), "status": error.status})
        finally:
            for descriptor in opened:
                os.close(descriptor)
        return DONE

    def _start(self, data: bytes, descriptors: list[int], pid: int, uid: int) -> None:
        settings = self._context.settings
        if settings.secrets is not None:  # the user's shell may have put a value into a word
            data = settings.secrets.masked(data)
        try:
            request = parse_request(data)
            standard = descriptors[1], descriptors[2], descriptors[3]
        except (ValueError, IndexError):
            raise HostError("the request cannot be read; use `netsandbox exec` of the same version") from None
        check_stdio(standard, (*settings.configs, settings.audit_log))
        if any(map(os.isatty, standard)):
            raise HostError("a terminal of this machine is not passed into a session; redirect it")
        written = self._context.log.write(
            "session.exec",
            command=request.words[0],
            args=len(request.words) - 1,
            folder=request.folder or None,
            terminal=bool(request.terminal),
            by_pid=pid,
            by_uid=uid,
        )
        if not written:
            raise HostError("the audit log cannot be written, so nothing is started; free space")
        self._backend.execute(data, descriptors)


def _read(descriptor: int) -> tuple[bytes, list[int]]:
    sock = _socket.socket(fileno=os.dup(descriptor))
    try:
        sock.setblocking(False)  # noqa: FBT003 (the standard library's own signature)
        return receive_descriptors(sock, MAX_REQUEST)
    except OSError:
        return b"", []
    finally:
        sock.close()
