"""The door at which the preload library requests a port that the map does not hold yet.

Each connection carries one request and one reply (struct ns_request and ns_reply of interpose/src/portmap.h). Rules: a
request is not used before its token is checked. Anything but exactly one request is closed without a reply, which the
library treats as a refusal. Any error while answering is EACCES (INV-1). Open connections are bounded in number and
time.
"""

from __future__ import annotations

import _socket
import _struct
import errno
from _operator import _compare_digest as compare_digest

from netsandbox.runtime.loop import IN
from netsandbox_portmap.acceptor import Acceptor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop, Timer

    Answer = Callable[[str, int, int], tuple[int, int]]

MAGIC = 0x4E534D50
REQUEST_BIND = 1
TCP, UDP = 6, 17
# No padding: the fields of both structs are aligned anyway.
REQUEST = _struct.Struct("=IHH4sI16s")
REPLY = _struct.Struct("=IiHH")

MAX_OPEN = 64  # connections without a complete request
DEADLINE = 2.0  # seconds for a complete request

_NO_SIGNAL = getattr(_socket, "MSG_NOSIGNAL", 0)  # Python ignores SIGPIPE; this covers programs that reset it


class Request:
    """The bind that a program wants to make."""

    __slots__ = ("address", "port", "protocol")

    def __init__(self, address: str, port: int, protocol: int) -> None:
        self.address = address  # IPv4; 0.0.0.0 for a wildcard
        self.port = port  # 0: any port
        self.protocol = protocol


def parse_request(data: bytes, token: bytes) -> Request | str:
    """The request, or the name of the invalid part: length, magic, token, operation, protocol."""
    if len(data) != REQUEST.size:
        return "length"
    magic, operation, port, address, protocol, presented = REQUEST.unpack(data)
    if magic != MAGIC:
        return "magic"
    if not compare_digest(presented, token):  # in constant time, so that the duration reveals nothing about the token
        return "token"
    if operation != REQUEST_BIND:
        return "operation"
    if protocol not in (TCP, UDP):
        return "protocol"
    return Request(_socket.inet_ntoa(address), port, protocol)


def reply(error: int, port: int) -> bytes:
    """*error* is 0, or the errno that the program gets."""
    return REPLY.pack(MAGIC, error, port, 0)


class BindRequestDoor:
    """Serves its listening socket. `answer(address, port, protocol)` gives (errno, port); `failed` gets its errors."""

    def __init__(
        self,
        loop: Loop,
        sock: _socket.socket,
        token: bytes,
        answer: Answer,
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._token = token
        self._answer = answer
        self._failed = failed
        self._waiting: dict[int, _Caller] = {}  # by descriptor, oldest first
        self._sweeper: Timer | None = None
        self._acceptor = Acceptor(loop, sock, self._receive)

    def __len__(self) -> int:
        """The number of connections whose request is incomplete."""
        return len(self._waiting)

    def close(self) -> None:
        self._acceptor.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for caller in tuple(self._waiting.values()):
            self._hang_up(caller)

    def _receive(self, sock: _socket.socket) -> None:
        caller = _Caller(sock)
        if not self._read(caller):  # the request has usually arrived already
            self._keep(caller)

    def _keep(self, caller: _Caller) -> None:
        """Watch it. Over the limit, the oldest connection is closed: the preload library sends its request at once."""
        if len(self._waiting) >= MAX_OPEN:
            oldest = next(iter(self._waiting.values()))
            if not self._read(oldest):
                self._hang_up(oldest)
        caller.until = self._loop.now() + DEADLINE
        try:
            self._loop.watch(caller.fd, IN, lambda events: self._on_caller(caller))
        except OSError:
            return self._hang_up(caller)
        self._waiting[caller.fd] = caller
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(DEADLINE, self._sweep)
        return None

    def _on_caller(self, caller: _Caller) -> None:
        self._read(caller)

    def _read(self, caller: _Caller) -> bool:
        """Read the available bytes; True if the connection got its reply or was closed."""
        try:
            data = caller.sock.recv(REQUEST.size + 1 - len(caller.received))
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        caller.received += data
        if data and len(caller.received) < REQUEST.size:
            return False
        try:
            self._serve(caller)
        finally:
            self._hang_up(caller)
        return True

    def _serve(self, caller: _Caller) -> None:
        request = parse_request(caller.received, self._token)
        if isinstance(request, str):
            return
        try:
            caller.sock.send(self._decide(request), _NO_SIGNAL)
        except OSError:  # the client left; otherwise twelve bytes always fit
            pass

    def _decide(self, request: Request) -> bytes:
        try:
            error, port = self._answer(request.address, request.port, request.protocol)
            if error == 0 and port == 0 and request.port != 0:  # 0 may stay 0; another port never becomes 0
                raise ValueError(f"{port} cannot be bound")
            return reply(error, port if error == 0 else 0)
        except Exception as failure:
            self._failed(failure)
            return reply(errno.EACCES, 0)

    def _hang_up(self, caller: _Caller) -> None:
        if self._waiting.pop(caller.fd, None) is not None:
            self._loop.unwatch(caller.fd)
        caller.sock.close()

    def _sweep(self) -> None:
        self._sweeper = None
        now = self._loop.now()
        for caller in tuple(self._waiting.values()):
            if caller.until > now:
                self._sweeper = self._loop.call_later(caller.until - now, self._sweep)
                return
            self._hang_up(caller)


class _Caller:
    """One connection and the bytes received so far."""

    __slots__ = ("fd", "received", "sock", "until")

    def __init__(self, sock: _socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.received = b""
        self.until = 0.0
