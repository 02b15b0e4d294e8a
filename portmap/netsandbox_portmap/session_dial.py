"""Reaches a port of another session of this user, by that session's name (`--connect-host NAME:PORT`).

The request goes over the control socket of the other session, whose supervisor decides, records it and replies with a
socket that is connected inside. No port of the host is involved, so none can have changed hands meanwhile. Names are
resolved for each connection: the other session may start later or start again.

Rules kept here:
1. A request has one spelling, which `read_request` compares byte for byte.
2. Nothing here waits: two sessions may ask each other at the same time.
3. Without a reply the client gets a reset, as from a host's port where nothing listens (INV-1).
"""

from __future__ import annotations

import _socket
import os

from netsandbox.frozen import frozen
from netsandbox.paths import is_session_id, list_sessions, session_dir
from netsandbox.runtime.control_socket import CONTROL_NAME, connect, is_trusted, receive_descriptors
from netsandbox.runtime.loop import IN
from netsandbox_portmap import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop

    Done = Callable[[_socket.socket | None, str], None]

DEADLINE = 5.0
REACHED, ANOTHER_NAME = b'{"ok":true}\n', b'{"error":"another name"}\n'
NOT_PUBLISHED, NOT_LISTENING = b'{"error":"not published"}\n', b'{"error":"nothing listens"}\n'
NOBODY, HIDDEN, UNHEARD, LATE = "nobody", "hidden", "unheard", "late"  # why it was not reached
_WHY = {NOT_PUBLISHED: HIDDEN, NOT_LISTENING: UNHEARD}
_MAX_REPLY = 256


@frozen
class PortRequest:
    """What a supervisor requests of another session's supervisor. `caller` is the id of its own session."""

    name: str
    port: int
    caller: str

    def line(self) -> bytes:
        return b'{"op":"connect","name":"%b","port":%d,"caller":"%b"}' % (
            self.name.encode("ascii"),
            self.port,
            self.caller.encode("ascii"),
        )


def read_request(line: bytes) -> PortRequest | None:
    """The request that has exactly this spelling; None if there is none."""
    words = line.split(b'"')
    if len(words) != 15 or not line.isascii():
        return None
    port = words[10].strip(b":,")
    if not (port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
        return None
    found = PortRequest(words[7].decode("ascii"), int(port), words[13].decode("ascii"))
    fits = is_name(found.name) and is_session_id(found.caller) and found.line() == line
    return found if fits else None


class SessionDial:
    """One connection to the session of that name. `done` is called once, with the connected socket or with the reason
    of the failure, and not after `close`. *known* is the id of the session that had the name before."""

    __slots__ = ("_done", "_line", "_loop", "_timer", "_waiting", "known")

    def __init__(self, loop: Loop, request: PortRequest, known: str | None, done: Done) -> None:
        self._loop = loop
        self._line = request.line() + b"\n"
        self._done: Done | None = done
        self._waiting: dict[str, _socket.socket] = {}
        self._timer = loop.call_later(DEADLINE, lambda: self._end(None, LATE))
        self.known = known

    def start(self) -> None:
        """Every session gets the request, unless one had the name before; only the one with the name accepts it."""
        for session in [self.known] if self.known is not None else list_sessions():
            self._put(session)
        self._check_nobody()

    def close(self) -> None:
        self._done = None
        self._timer.cancel()
        for session in tuple(self._waiting):
            self._drop(session)

    def _put(self, session: str) -> None:
        directory = session_dir(session)
        if not os.path.lexists(os.path.join(directory, CONTROL_NAME)):  # most have ended, and a look costs little
            return
        try:
            sock = connect(directory)
        except OSError:  # it has ended, or has too many clients
            return
        try:
            sent = sock.send(self._line) if is_trusted(sock) else 0
        except OSError:
            sent = 0
        if sent != len(self._line):
            sock.close()
            return
        self._waiting[session] = sock
        self._loop.watch(sock.fileno(), IN, lambda events: self._on_reply(session, sock))

    def _on_reply(self, session: str, sock: _socket.socket) -> None:
        try:
            data, passed = receive_descriptors(sock, _MAX_REPLY)
        except BlockingIOError:
            return
        except OSError:
            data, passed = b"", []
        self._drop(session)
        if passed:
            self.known = session
            made, *others = [_socket.socket(fileno=descriptor) for descriptor in passed]
            for other in others:  # a session sends one
                other.close()
            made.setblocking(False)  # noqa: FBT003 (the standard library's own signature)
            self._end(made, "")
        elif data in _WHY:
            self.known = session
            self._end(None, _WHY[data])
        else:
            self._check_nobody()

    def _check_nobody(self) -> None:
        if self._waiting or self._done is None:
            return
        if self.known is None:
            self._end(None, NOBODY)
            return
        self.known = None  # that session has ended; another may have its name now
        self.start()

    def _drop(self, session: str) -> None:
        sock = self._waiting.pop(session)
        self._loop.unwatch(sock.fileno())
        sock.close()

    def _end(self, sock: _socket.socket | None, why: str) -> None:
        done = self._done
        self.close()
        assert done is not None
        done(sock, why)
