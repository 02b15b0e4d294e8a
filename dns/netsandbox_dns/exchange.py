"""One query to the host's name servers, repeated until one of them sends a reply that passes every check.

Rules kept here:

1. Each try has its own connected socket (the kernel draws the port and drops other senders), its own random id and its
   own random spelling of the name (0x20); a reply must match all of them, and others are ignored while we wait.
2. A reply that is right except for the spelling comes from a server that changes case, or from an attacker who guesses:
   it is ignored, and the same server is queried over TCP, which cannot be spoofed off path.
3. `done` is called exactly once; whatever goes wrong it gets a reason, never an answer (INV-1).
"""

from __future__ import annotations

import errno
import os
from _socket import AF_INET, AF_INET6, SO_ERROR, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET
from _socket import socket as Socket

from netsandbox.runtime.loop import IN, OUT
from netsandbox_dns.upstream_reply import parse_reply
from netsandbox_dns.wire import EDNS_SIZE, NOERROR, NXDOMAIN, encode_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop, Timer
    from netsandbox_dns.resolv_conf import NameServers
    from netsandbox_dns.upstream_reply import Reply

    Done = Callable[[Reply | str], None]

SERVFAIL, TIMEOUT = "servfail", "timeout"
_MAX_DATAGRAMS = 64  # datagrams examined before the loop gets its turn back
_OPT = b"\0\0\x29" + EDNS_SIZE.to_bytes(2, "big") + b"\0\0\0\0\0\0"


class Exchange:
    """Sends the query at once; after `cancel` no callback is called."""

    def __init__(
        self,
        loop: Loop,
        servers: NameServers,
        name: str,
        qtype: int,
        done: Done,
    ) -> None:
        self._loop = loop
        self._tries = servers.places * servers.attempts
        self._name = encode_name(name)
        self._qtype = qtype
        self._done: Done | None = done
        self._timeout = servers.timeout
        self._reason = TIMEOUT
        self._server = ("", 0)
        self._sock: Socket | None = None
        self._timer: Timer | None = None
        self._id = 0
        self._question = b""
        self._stream = bytearray()  # what is still to be sent, then what came, over TCP
        self._next()

    def cancel(self) -> None:
        self._done = None
        self._drop()

    def _next(self) -> None:
        """Ask the next server, or give up."""
        self._drop()
        while self._tries:
            self._server = self._tries.pop(0)
            try:
                sock = self._connected(SOCK_DGRAM)
                sock.send(self._query())
                self._watch(sock, IN, self._on_datagram)
            except OSError:  # no route, no descriptor, no watch left: the next server may do better
                self._reason = SERVFAIL
                self._drop()
                continue
            return
        self._finish(self._reason)

    def _connected(self, kind: int) -> Socket:
        address, port = self._server
        family = AF_INET6 if ":" in address else AF_INET
        sock = self._sock = Socket(family, kind)
        sock.settimeout(0)
        code = sock.connect_ex(_socket_address(address, port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        return sock

    def _query(self) -> bytes:
        ident = os.urandom(2)
        self._id = int.from_bytes(ident, "big")
        self._question = _random_case(self._name) + self._qtype.to_bytes(2, "big") + b"\0\1"
        return ident + b"\1\0\0\1\0\0\0\0\0\1" + self._question + _OPT

    def _watch(self, sock: Socket, events: int, handler: Callable[[int], None]) -> None:
        self._loop.watch(sock.fileno(), events, handler)
        self._timer = self._loop.call_later(self._timeout, self._on_timeout)

    def _on_timeout(self) -> None:
        self._reason = TIMEOUT
        self._next()

    def _on_datagram(self, _events: int) -> None:
        assert self._sock is not None
        for _ in range(_MAX_DATAGRAMS):
            try:
                data = self._sock.recv(4096)
            except BlockingIOError:
                return
            except OSError:  # no server listens there
                self._reason = SERVFAIL
                self._next()
                return
            reply = parse_reply(data)
            if reply is None or reply.id != self._id or reply.question.lower() != self._question.lower():
                continue
            if reply.truncated or reply.question != self._question:
                self._retry_over_tcp()
            else:
                self._accept(reply)
            return

    def _accept(self, reply: Reply) -> None:
        if reply.rcode in (NOERROR, NXDOMAIN):
            self._finish(reply)
            return
        self._reason = SERVFAIL
        self._next()

    def _retry_over_tcp(self) -> None:
        self._drop()
        query = self._query()
        self._stream = bytearray(len(query).to_bytes(2, "big") + query)
        try:
            self._watch(self._connected(SOCK_STREAM), OUT, self._on_writable)
        except OSError:
            self._reason = SERVFAIL
            self._next()

    def _on_writable(self, _events: int) -> None:
        assert self._sock is not None
        try:
            if self._sock.getsockopt(SOL_SOCKET, SO_ERROR):
                raise ConnectionError
            del self._stream[: self._sock.send(self._stream)]
        except BlockingIOError:
            return
        except OSError:
            self._reason = SERVFAIL
            self._next()
            return
        if self._stream:
            return
        # The handler changes with the direction, so the descriptor is watched anew.
        self._loop.unwatch(self._sock.fileno())
        self._loop.watch(self._sock.fileno(), IN, self._on_readable)

    def _on_readable(self, _events: int) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(65537 - len(self._stream))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._stream += data
        whole = 2 + int.from_bytes(self._stream[:2], "big") if len(self._stream) >= 2 else 65537
        if data and len(self._stream) < whole:
            return
        reply = parse_reply(bytes(self._stream[2:whole])) if len(self._stream) >= whole else None
        right = reply is not None and reply.id == self._id and reply.question.lower() == self._question.lower()
        if reply is not None and right and not reply.truncated:
            self._accept(reply)
            return
        self._reason = SERVFAIL
        self._next()

    def _drop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sock is not None:
            self._loop.unwatch(self._sock.fileno())
            self._sock.close()
            self._sock = None

    def _finish(self, result: Reply | str) -> None:
        self._drop()
        done, self._done = self._done, None
        if done is not None:
            done(result)


def _socket_address(address: str, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    bare, _, zone = address.partition("%")
    if not zone:
        return address, port
    from _socket import if_nametoindex

    return bare, port, 0, int(zone) if zone.isdigit() else if_nametoindex(zone)


def _random_case(name: bytes) -> bytes:
    """The name with each letter's case drawn at random; lengths (at most 63) are below every letter."""
    bits = os.urandom(len(name))
    return bytes(c ^ 0x20 if c | 0x20 in _LETTERS and bits[i] & 1 else c for i, c in enumerate(name))


_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz")
