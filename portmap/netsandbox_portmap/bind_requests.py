"""The door where the preload library asks for a port that the map does not hold yet.

One connection, one request, one reply (struct ns_request and ns_reply of interpose/src/portmap.h). Rules: nothing of a
request is believed before its token is right; what is not exactly one request is closed without a word, which the
library takes for a refusal; whatever goes wrong while answering is EACCES (INV-1); what a caller can hold open is
bounded in number and in time.
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
ASK_BIND = 1
TCP, UDP = 6, 17
# Without alignment: the fields of both structs lie on their own boundaries anyway.
REQUEST = _struct.Struct("=IHH4sI16s")
REPLY = _struct.Struct("=IiHH")

OPEN = 64  # callers that have not said everything yet
DEADLINE = 2.0  # seconds for a whole request

_NO_SIGNAL = getattr(_socket, "MSG_NOSIGNAL", 0)  # Python ignores SIGPIPE; where a caller does not, this does


class Request:
    """What a program wants to bind."""

    __slots__ = ("address", "port", "protocol")

    def __init__(self, address: str, port: int, protocol: int) -> None:
        self.address = address  # IPv4; 0.0.0.0 for a wildcard
        self.port = port  # 0: any
        self.protocol = protocol


def parse_request(data: bytes, token: bytes) -> Request | str:
    """The request, or the word for what is wrong with it: length, magic, token, operation, protocol."""
    if len(data) != REQUEST.size:
        return "length"
    magic, operation, port, address, protocol, presented = REQUEST.unpack(data)
    if magic != MAGIC:
        return "magic"
    if not compare_digest(presented, token):  # in a time that does not tell where they begin to differ
        return "token"
    if operation != ASK_BIND:
        return "operation"
    if protocol not in (TCP, UDP):
        return "protocol"
    return Request(_socket.inet_ntoa(address), port, protocol)


def reply(error: int, port: int) -> bytes:
    """*error* is 0, or the errno that the program gets."""
    return REPLY.pack(MAGIC, error, port, 0)


class BindRequestDoor:
    """Serves the listening socket, which it owns. `answer(address, port, protocol)` gives (errno, port); `failed` is
    told when it raises."""

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
        self._waiting: dict[int, _Caller] = {}  # by descriptor, in the order of arrival
        self._sweeper: Timer | None = None
        self._acceptor = Acceptor(loop, sock, self._receive)

    def __len__(self) -> int:
        """How many have begun and not finished asking."""
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
        if not self._hear(caller):  # mostly the request is here already
            self._keep(caller)

    def _keep(self, caller: _Caller) -> None:
        """Past the limit the one that has been silent longest goes: an honest caller asks at once."""
        if len(self._waiting) >= OPEN:
            oldest = next(iter(self._waiting.values()))
            if not self._hear(oldest):
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
        self._hear(caller)

    def _hear(self, caller: _Caller) -> bool:
        """Read what is there; True when the caller has been served or sent away."""
        try:
            data = caller.sock.recv(REQUEST.size + 1 - len(caller.heard))
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        caller.heard += data
        if data and len(caller.heard) < REQUEST.size:
            return False
        try:
            self._serve(caller)
        finally:
            self._hang_up(caller)
        return True

    def _serve(self, caller: _Caller) -> None:
        request = parse_request(caller.heard, self._token)
        if isinstance(request, str):
            return
        try:
            caller.sock.send(self._decide(request), _NO_SIGNAL)
        except OSError:  # it left without waiting; twelve bytes always fit otherwise
            pass

    def _decide(self, request: Request) -> bytes:
        try:
            error, port = self._answer(request.address, request.port, request.protocol)
            if error == 0 and port == 0 and request.port != 0:  # "any" may stay "any"; a port never becomes it
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
    """One connection and what it has said so far."""

    __slots__ = ("fd", "heard", "sock", "until")

    def __init__(self, sock: _socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.heard = b""
        self.until = 0.0
