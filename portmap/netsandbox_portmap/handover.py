"""Passes connections and listening sockets between the sessions of one user.

    <state home>/netsandbox/gateway/NAME     a Unix socket; NAME is a session's name, which only one session holds

Rules kept here:
1. Only our own user and root get an answer or may hand over a connection, and no session sees the folder (INV-8).
2. A name that a client wrote is compared with the names in the folder and never becomes part of a path (attack 190).
3. Bytes of a request, clients and seconds are bounded. An error closes the connection that was handed over (INV-1).
"""

from __future__ import annotations

import _socket
import os

from netsandbox.errors import NetsandboxError
from netsandbox.paths import state_home
from netsandbox.runtime.control_socket import (
    EARLY,
    connect,
    is_trusted,
    listen_private,
    receive_descriptors,
    send_descriptors,
)
from netsandbox.runtime.listener import Listener
from netsandbox.runtime.loop import IN
from netsandbox_portmap import is_name
from netsandbox_portmap.session_name import hold_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from netsandbox.runtime.loop import Loop

    Receive = Callable[[_socket.socket, bytes], None]
    Listeners = Callable[[int], Sequence[_socket.socket]]  # the sockets that listen at a port; none if we have none

FOLDER = "gateway"
LISTENERS, CONNECTION = b"listeners", b"connection"
MAX_LINE = 32
MAX_HELD = 128 * 1024  # bytes of a client that were read before its connection was handed over
MAX_CLIENTS = 64  # at the same time; more wait in the kernel's queue
BACKLOG = 1024
MAX_LISTENERS = 2  # IPv4 and IPv6
MAX_ASKED = 256
DEADLINE = 2.0
PATIENCE = 1.0  # seconds for the other sessions to answer


def folder() -> str:
    return os.path.join(state_home(), FOLDER)


def session_names() -> list[str]:
    """The names that sessions have or had."""
    try:
        return sorted(filter(is_name, os.listdir(folder())))
    except OSError:
        return []


def live_names() -> list[str]:
    """The names of sessions that take connections now. Those of killed sessions are removed."""
    found = []
    for name in session_names()[:MAX_ASKED]:
        try:
            _connect(name).close()
        except ConnectionRefusedError:
            _forget(name)
        except OSError:
            continue
        else:
            found.append(name)
    return found


def hand_over(name: str, client: _socket.socket, data: bytes) -> None:
    """Give *client*, of which *data* was read, to the session *name*; the caller closes its own copy.

    FileNotFoundError and ConnectionRefusedError: there is no such session; another OSError: it takes none now.
    """
    if name not in session_names():
        raise FileNotFoundError(name)
    sock = _connect(name)
    try:
        message = b"%s %d\n%s" % (CONNECTION, len(data), data)
        sent = send_descriptors(sock, message, [client.fileno()])
        if sent != len(message):  # never, below the kernel's smallest buffer
            raise BlockingIOError(name)
    finally:
        sock.close()


def _connect(name: str) -> _socket.socket:
    sock = connect(folder(), name)
    if not is_trusted(sock):
        sock.close()
        raise PermissionError(name)
    return sock


def _forget(name: str) -> None:
    """Remove the socket of a session that was killed, unless a new one has its name."""
    try:
        held = hold_name(name, explicit=True)
    except NetsandboxError:
        return
    try:
        os.unlink(os.path.join(folder(), name))
    except OSError:
        pass
    finally:
        held.close()


class HandoverDoor:
    """Listens as *name* until `close`. *receive* owns each connection that it gets."""

    def __init__(self, loop: Loop, name: str, listeners: Listeners, receive: Receive) -> None:
        self.loop = loop
        self.listeners = listeners
        self.receive = receive
        self._path = os.path.join(folder(), name)
        self._clients: set[_Client] = set()
        try:
            os.unlink(self._path + EARLY)  # of a session that was killed; the name is ours
        except OSError:
            pass
        self._listener = Listener(loop, listen_private(folder(), name, BACKLOG), self._on_client)

    def close(self) -> None:
        try:
            os.unlink(self._path)
        except OSError:
            pass
        self._listener.close()
        for client in tuple(self._clients):
            client.close()

    def gone(self, client: _Client) -> None:
        self._clients.discard(client)
        self._listener.resume()

    def _on_client(self, sock: _socket.socket, _source: object) -> None:
        if not is_trusted(sock):
            sock.close()
            return
        self._clients.add(_Client(self, sock))
        if len(self._clients) >= MAX_CLIENTS:
            self._listener.stop()


class _Client:
    """One request of another session."""

    __slots__ = ("_door", "_received", "_request", "_sock", "_timer")

    def __init__(self, door: HandoverDoor, sock: _socket.socket) -> None:
        self._door = door
        self._sock = sock
        self._request = b""
        self._received: list[_socket.socket] = []
        self._timer = door.loop.call_later(DEADLINE, self.close)
        door.loop.watch(sock.fileno(), IN, self._on_request)

    def close(self) -> None:
        self._timer.cancel()
        if self._sock.fileno() >= 0:
            self._door.loop.unwatch(self._sock.fileno())
            self._sock.close()
        while self._received:
            self._received.pop().close()
        self._door.gone(self)

    def _on_request(self, events: int) -> None:
        try:
            data = receive(self._sock, self._received)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._request += data
        line, end, rest = self._request.partition(b"\n")
        operation, _, number = line.partition(b" ")
        readable = number.isdigit() and len(number) < 7 if end else len(line) <= MAX_LINE
        if not data or not readable or len(rest) > MAX_HELD:
            self.close()
        elif end and operation == LISTENERS:
            self._send_listeners(int(number))
        elif end and operation == CONNECTION and len(rest) >= int(number):
            self._take(rest)

    def _send_listeners(self, port: int) -> None:
        found = self._door.listeners(port)[:MAX_LISTENERS]
        try:
            send_descriptors(self._sock, b"%d" % len(found), [sock.fileno() for sock in found])
        except OSError:  # it has left
            pass
        self.close()

    def _take(self, data: bytes) -> None:
        sock = self._received.pop() if len(self._received) == 1 else None
        self.close()
        if sock is not None:
            self._door.receive(sock, data)


class ListenersRequest:
    """Asks all other sessions for the sockets that listen at *port*.

    `done` is called once, with the sockets, which it owns, or with none if no session has them; not after `close`.
    """

    def __init__(self, loop: Loop, port: int, own: str, done: Callable[[list[_socket.socket]], None]) -> None:
        self._loop = loop
        self._done: Callable[[list[_socket.socket]], None] | None = done
        self._asked: dict[int, _socket.socket] = {}
        self._timer = loop.call_later(PATIENCE, lambda: self._end([]))
        for name in session_names()[:MAX_ASKED]:
            if name != own:
                self._ask(name, port)
        if not self._asked:
            self._timer.cancel()
            self._timer = loop.call_later(0, lambda: self._end([]))

    def close(self) -> None:
        self._done = None
        self._timer.cancel()
        for fd in tuple(self._asked):
            self._drop(fd)

    def _ask(self, name: str, port: int) -> None:
        try:
            sock = _connect(name)
        except ConnectionRefusedError:
            return _forget(name)
        except OSError:
            return None
        try:
            sock.send(b"%s %d\n" % (LISTENERS, port))
            self._loop.watch(sock.fileno(), IN, lambda events: self._on_reply(sock))
        except OSError:
            return sock.close()
        self._asked[sock.fileno()] = sock
        return None

    def _on_reply(self, sock: _socket.socket) -> None:
        found: list[_socket.socket] = []
        try:
            receive(sock, found)
        except BlockingIOError:
            return
        except OSError:
            pass
        self._drop(sock.fileno())
        if found or not self._asked:
            self._end(found)

    def _drop(self, fd: int) -> None:
        self._loop.unwatch(fd)
        self._asked.pop(fd).close()

    def _end(self, found: list[_socket.socket]) -> None:
        done = self._done
        self.close()
        assert done is not None
        done(found)


def receive(sock: _socket.socket, sockets: list[_socket.socket]) -> bytes:
    """The next bytes; the sockets that came with them are added to *sockets*."""
    data, found = receive_descriptors(sock, MAX_LINE + MAX_HELD)
    while found:
        try:
            sockets.append(_socket.socket(fileno=found[0]))
        except OSError:
            for descriptor in found:
                os.close(descriptor)
            raise
        found.pop(0)
    return data
