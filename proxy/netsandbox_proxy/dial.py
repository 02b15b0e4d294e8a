"""Connects to the destination of a grant: address after address, each recorded before it is dialled.

Rules: connect() only after `Gate.dialling` returned True for that address (INV-5), and only to an address of the grant
or of its parent proxy (INV-4). A parent must answer our CONNECT with 2xx before the flow sees the socket, so no byte of
the client leaves earlier. The owner calls `expired` when the time for one address is over.
"""

from __future__ import annotations

import _socket
import errno

from netsandbox.runtime.loop import IN, OUT
from netsandbox.runtime.stream import Stream
from netsandbox.text import join_host_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop
    from netsandbox_proxy.contract import Gate, Grant

UNREACHABLE = "unreachable"
AUDIT_UNWRITABLE = "audit-unwritable"
MAX_PARENT_HEAD = 16 * 1024  # the longest answer of a parent proxy to our CONNECT
MAX_ADDRESSES = 8  # of one name; the rest would only prolong the wait

_CONNECTED = (0, errno.EISCONN)
_UNDERWAY = (errno.EINPROGRESS, errno.EALREADY)
_NONBLOCK = getattr(_socket, "SOCK_NONBLOCK", 0)  # where the kernel makes sockets so; elsewhere it takes a second call
_STREAM = _socket.SOCK_STREAM | _NONBLOCK


class Dial:
    """Calls `done(stream, address, leftover)` on success, `failed(reason)` otherwise; one of them, once."""

    __slots__ = (
        "_addresses",
        "_done",
        "_failed",
        "_gate",
        "_grant",
        "_index",
        "_loop",
        "_parent_reply",
        "_port",
        "_stream",
    )

    def __init__(
        self,
        loop: Loop,
        gate: Gate,
        grant: Grant,
        done: Callable[[Stream, str, bytes], None],
        failed: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._gate = gate
        self._grant = grant
        self._done = done
        self._failed = failed
        parent = grant.parent
        self._addresses = grant.addresses if parent is None else parent.addresses
        self._port = grant.port if parent is None else parent.port
        self._index = 0
        self._stream: Stream | None = None
        self._parent_reply = b""

    def start(self) -> None:
        """Dial the next address, or give up."""
        while self._index < len(self._addresses) and self._index < MAX_ADDRESSES:
            family, literal = self._addresses[self._index]
            self._index += 1
            if not self._gate.dialling(self._grant, literal):
                return self._failed(AUDIT_UNWRITABLE)
            if self._connect(family, literal):
                return None
        return self._failed(UNREACHABLE)

    def expired(self) -> None:
        """The time for this address is over."""
        self.close()
        self.start()

    def close(self) -> None:
        stream, self._stream = self._stream, None
        self._parent_reply = b""
        if stream is not None:
            stream.abort()

    def _connect(self, family: int, literal: str) -> bool:
        """True when the connection is under way, or already there."""
        try:
            sock = _socket.socket(family, _STREAM)
        except OSError:  # no descriptor left: this attempt fails, the others go on (INV-1)
            return False
        try:
            if not _NONBLOCK:
                sock.setblocking(False)  # noqa: FBT003 (the C method takes no keyword)
            if family != _socket.AF_UNIX:
                sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            code = sock.connect_ex((literal, self._port))
            if code in _UNDERWAY:  # a peer on this machine has answered by now
                code = sock.connect_ex((literal, self._port))
            if code not in _UNDERWAY and code not in _CONNECTED:
                sock.close()
                return False
            stream = Stream(self._loop, sock, self._on_connect)
            stream.on_failure = self.expired
            if code in _UNDERWAY:
                stream.want(OUT)
        except (OSError, OverflowError):
            sock.close()
            return False
        self._stream = stream
        if code in _CONNECTED:
            self._connected(stream, literal)
        return True

    def _on_connect(self, events: int) -> None:
        stream = self._stream
        assert stream is not None
        literal = self._addresses[self._index - 1][1]
        # A second connect() distinguishes success, failure and "not yet"; SO_ERROR is 0 for the first and the last.
        code = stream.sock.connect_ex((literal, self._port))
        if code in _CONNECTED:
            self._connected(stream, literal)
        elif code not in _UNDERWAY:
            self.expired()

    def _connected(self, stream: Stream, literal: str) -> None:
        if self._grant.parent is not None:
            return self._request_tunnel(stream)
        self._stream = None
        return self._done(stream, literal, b"")

    def _request_tunnel(self, stream: Stream) -> None:
        request = parent_request(self._grant)
        if stream.send(request) != len(request):  # a fresh socket takes 64 KiB: this one is broken
            return self.expired()
        stream.on_ready = self._on_parent
        return stream.want(IN)

    def _on_parent(self, events: int) -> None:
        stream = self._stream
        assert stream is not None
        data = stream.read(MAX_PARENT_HEAD)
        if data is None:
            return None
        self._parent_reply += data
        head, blank, leftover = self._parent_reply.partition(b"\r\n\r\n")
        if not data or len(head) > MAX_PARENT_HEAD:
            return self.expired()
        if not blank:
            return None
        if not accepted(head):
            return self.expired()
        self._stream = None
        return self._done(stream, self._addresses[self._index - 1][1], leftover)


def parent_request(grant: Grant) -> bytes:
    """Our own CONNECT, made from the canonical name: it contains no byte of the client."""
    authority = join_host_port(grant.host, grant.port).encode("ascii")
    lines = [b"CONNECT " + authority + b" HTTP/1.1", b"Host: " + authority]
    if grant.parent is not None and grant.parent.authorization is not None:
        lines.append(b"Proxy-Authorization: " + grant.parent.authorization)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def accepted(head: bytes) -> bool:
    """Whether a parent's reply is 2xx."""
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or words[0] not in (b"HTTP/1.1", b"HTTP/1.0"):
        return False
    return len(words[1]) == 3 and words[1].isdigit() and words[1].startswith(b"2")
