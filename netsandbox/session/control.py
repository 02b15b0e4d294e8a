"""The session's control socket, through which `ps`, `ports`, `open`, `exec` and `stop` reach it.

Rules kept here:
1. Only our own user and root get a reply. The kernel reports the peer's uid (attacks 171, 182). The socket has mode
   0600 in a 0700 folder, which is hidden from every session.
2. A request is one line from a closed table, compared byte for byte, so there is no parser to attack (attack 185). In a
   session that asks, any other line goes to *handle_reply*, which accepts one spelling of an answer. A request for a
   port of this session (`session_dial`) has one spelling too, and its reply carries a socket. Requests that may come
   with descriptors are in the table `handlers`; descriptors of any other request are closed. A request that is unknown,
   too long or too slow gets an error or no reply, and its connection is closed; the session continues.
3. Everything is bounded: clients, bytes of a request, seconds for it, bytes of a reply.
4. The socket gets its name only when it listens, so a client whose connection is refused may remove it as dead.
"""

from __future__ import annotations

import _socket
import os

from netsandbox_portmap.session_dial import read_request

from netsandbox.audit.record_line import JsonWriter
from netsandbox.errors import HostError
from netsandbox.runtime.control_socket import (
    is_trusted,
    listen_private,
    peer_pid,
    peer_uid,
    receive_descriptors,
    send_descriptors,
)
from netsandbox.runtime.listener import Listener
from netsandbox.runtime.loop import IN, OUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.contract import Dial
    from netsandbox_portmap.session_dial import PortRequest

    from netsandbox.runtime.loop import Loop, Timer

    HandleReply = Callable[[bytes, int, int], bytes | None]  # receives a line, and the pid and uid of its sender
    Offer = Callable[[PortRequest, Callable[[_socket.socket | None, bytes], None]], Dial | None]
    Handler = Callable[[list[int], int, int], bytes]  # receives descriptors, which it closes; pid and uid

STATUS, STOP = b'{"op":"status"}', b'{"op":"stop"}'
EXEC = b'{"op":"exec"}'
SETTLE = b'{"op":"settle"}'  # records of repeats are written now, not later
DONE, UNKNOWN, INTERNAL = b'{"ok":true}\n', b'{"error":"unknown request"}\n', b'{"error":"internal"}\n'
VERSION = 1  # of the reply format; clients accept no other
MAX_REPLY = 1 << 20
BOUNDS = (4096, 256, 64)  # maximum characters of a text and members of a list, tried in order until the line fits
TOO_LONG = b'{"error":"too long"}\n'
MAX_REQUEST = 4096
DEADLINE = 2.0
MAX_CLIENTS = 32


class Control:
    """Listens until `close`. *status* returns the session's status; *stop* starts its end and returns at once."""

    def __init__(
        self,
        loop: Loop,
        path: str,
        status: Callable[[], dict[str, object]],
        stop: Callable[[], None],
        handle_reply: HandleReply | None = None,
    ) -> None:
        self.loop = loop
        self.status = status
        self.stop = stop
        self.handle_reply = handle_reply
        self.offer: Offer | None = None  # hands out sockets that are connected to a port inside
        self.handlers: dict[bytes, Handler] = {}  # of requests that may come with descriptors
        self._clients: set[_Client] = set()
        self._closed = False
        self._folder, self._name = os.path.split(path)
        try:
            sock = listen_private(self._folder, self._name, MAX_CLIENTS)
        except OSError as error:
            advice = "set XDG_STATE_HOME to a directory of your own that can be written"
            raise HostError(f"cannot make the control socket {path!a}: {error.strerror}; {advice}") from None
        self._listener = Listener(loop, sock, self._on_client)

    def close(self) -> None:
        """Close at the end of the session. The name is removed first, so clients that wait for the end find it gone."""
        if self._closed:
            return
        self._closed = True
        for act, path in ((os.unlink, os.path.join(self._folder, self._name)), (os.rmdir, self._folder)):
            try:
                act(path)
            except OSError:  # another process removed it first, or the folder holds the log, which is usual
                pass
        self._listener.close()
        for client in list(self._clients):
            client.close()

    def gone(self, client: _Client) -> None:
        self._clients.discard(client)
        self._listener.resume()

    def _on_client(self, sock: _socket.socket, _source: object) -> None:
        if not is_trusted(sock):
            sock.close()
            return
        self._clients.add(_Client(self, sock))
        if len(self._clients) >= MAX_CLIENTS:  # further clients wait in the kernel's queue, which is bounded too
            self._listener.stop()


class _Client:
    """One request and its reply. After a stop request, the client stays until the session has ended."""

    def __init__(self, control: Control, sock: _socket.socket) -> None:
        self._control = control
        self._sock = sock
        self._request = b""
        self._reply = b""
        self._descriptors: list[int] = []
        self._stays = False  # until the session has ended
        self._dial: Dial | None = None
        self._timer: Timer | None = control.loop.call_later(DEADLINE, self.close)
        control.loop.watch(sock.fileno(), IN, self._on_request)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._dial is not None:
            self._dial.close()
            self._dial = None
        while self._descriptors:
            os.close(self._descriptors.pop())
        if self._sock.fileno() >= 0:
            self._control.loop.unwatch(self._sock.fileno())
            self._sock.close()
        self._control.gone(self)

    def _on_request(self, events: int) -> None:
        try:
            data, descriptors = receive_descriptors(self._sock, MAX_REQUEST + 1 - len(self._request))
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._request += data
        self._descriptors += descriptors
        line, end, rest = self._request.partition(b"\n")
        if end:
            self._serve(line, rest)
        elif not data or len(self._request) > MAX_REQUEST:
            self._answer(UNKNOWN)

    def _serve(self, line: bytes, rest: bytes) -> None:
        if line == STATUS and not rest:
            self._reply_with(lambda: encode({"v": VERSION, **self._control.status()}))
        elif line == STOP and not rest:
            self._stays = True
            self._answer(DONE)
            self._control.stop()
        elif self._control.offer is not None and not rest and (wanted := read_request(line)) is not None:
            self._dial = self._control.offer(wanted, self._give)
        elif line in self._control.handlers and not rest:
            handle, passed, self._descriptors = self._control.handlers[line], self._descriptors, []
            pid, uid = peer_pid(self._sock), peer_uid(self._sock)
            self._reply_with(lambda: handle(passed, pid, uid))
        elif self._control.handle_reply is not None and not rest:
            handle_reply, pid, uid = self._control.handle_reply, peer_pid(self._sock), peer_uid(self._sock)
            self._reply_with(lambda: handle_reply(line, pid, uid) or UNKNOWN)
        else:
            self._answer(UNKNOWN)

    def _give(self, connected: _socket.socket | None, reply: bytes) -> None:
        """Reply with the *connected* socket, which we close in every case. The reply is short, so it fits."""
        self._dial = None
        if connected is None:
            self._answer(reply)
            return
        try:
            send_descriptors(self._sock, reply, [connected.fileno()])
        except OSError:  # the client has left
            pass
        connected.close()
        self.close()

    def _reply_with(self, make: Callable[[], bytes]) -> None:
        try:
            reply = make()
        except Exception:
            self._answer(INTERNAL)
            raise  # the loop records it
        self._answer(reply)

    def _answer(self, reply: bytes) -> None:
        self._reply = reply
        loop, fd = self._control.loop, self._sock.fileno()
        loop.unwatch(fd)
        loop.watch(fd, OUT, self._on_room)
        self._on_room(OUT)

    def _on_room(self, events: int) -> None:
        try:
            sent = self._sock.send(self._reply)
        except BlockingIOError:
            return
        except OSError:  # the client has left
            self.close()
            return
        self._reply = self._reply[sent:]
        if self._reply:
            return
        if self._stays:
            self._await_end()
        else:
            self.close()

    def _await_end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop, fd = self._control.loop, self._sock.fileno()
        loop.unwatch(fd)
        loop.watch(fd, IN, lambda events: self.close())  # the client left, or sends more than one request


def encode(value: object) -> bytes:
    """A reply: one line of ASCII JSON. Texts and lists are cut until the line fits."""
    for bound in BOUNDS:
        parts: list[str] = []
        room = MAX_REPLY - 1
        for piece in JsonWriter(bound, bound).pieces(value):
            parts.append(piece)
            room -= len(piece)
            if room < 0:
                break
        else:
            return "".join(parts).encode("ascii") + b"\n"
    return TOO_LONG
