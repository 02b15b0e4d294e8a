"""Finds out from its first answer whether a server speaks TLS. Servers are never probed unasked: a server without TLS
would log the probe as a request that it cannot read.
"""

from __future__ import annotations

from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop

CHUNK = 16 * 1024
ALERT, HANDSHAKE = 21, 22  # RFC 8446, 5.1
UNRECOGNIZED_NAME = bytes((ALERT, 3, 1, 0, 2, 2, 112))  # a fatal alert (RFC 6066, 3)
# A ClientHello of TLS 1.2: eight usual suites, the server name localhost, groups and signature algorithms. A server
# that wants another version answers with an alert, which tells as much.
_SUITES = "c02bc02fc02cc030cca9cca8009c002f"
_EXTENSIONS = (
    "0000000e000c0000096c6f63616c686f7374"  # server_name
    "000a00080006001d00170018"  # supported_groups
    "000b00020100"  # ec_point_formats
    "000d0010000e0403050306030804080504010501"  # signature_algorithms
)


def _probe() -> bytes:
    extensions = bytes.fromhex(_EXTENSIONS)
    suites = bytes.fromhex(_SUITES)
    body = b"\x03\x03" + bytes(range(32)) + b"\0" + _sized(suites, 2) + b"\x01\0" + _sized(extensions, 2)
    return bytes((HANDSHAKE, 3, 1)) + _sized(b"\x01" + _sized(body, 3), 2)


def _sized(data: bytes, size: int) -> bytes:
    return len(data).to_bytes(size, "big") + data


PROBE = _probe()


def is_tls(first: bytes) -> bool:
    """Whether the server's first bytes are a TLS record."""
    return len(first) > 1 and first[0] in (ALERT, HANDSHAKE) and first[1] == 3


class FirstAnswer:
    """Sends *data* to a connected server and waits for its first bytes.

    `done(first, unsent)` is called once: *first* is empty if the server closed or did not answer in time, and *unsent*
    is what its queue did not take. It is not called after `close`. The socket stays open.
    """

    __slots__ = ("_data", "_done", "_loop", "_sock", "_timer", "_watched")

    def __init__(
        self,
        loop: Loop,
        sock: _socket.socket,
        data: bytes,
        done: Callable[[bytes, bytes], None],
        seconds: float,
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._data = data
        self._done: Callable[[bytes, bytes], None] | None = done
        self._watched = False
        self._timer = loop.call_later(seconds, lambda: self._end(b""))

    def start(self) -> None:
        try:
            self._data = self._data[self._sock.send(self._data) :]
            self._loop.watch(self._sock.fileno(), IN, self._on_answer)
            self._watched = True
        except OSError:
            self._end(b"")

    def close(self) -> None:
        self._done = None
        self._timer.cancel()
        if self._watched:
            self._watched = False
            self._loop.unwatch(self._sock.fileno())

    def _on_answer(self, events: int) -> None:
        try:
            first = self._sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            first = b""
        self._end(first)

    def _end(self, first: bytes) -> None:
        done = self._done
        self.close()
        if done is not None:
            done(first, self._data)
