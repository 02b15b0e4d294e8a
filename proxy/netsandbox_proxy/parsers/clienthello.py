"""The first TLS message of a client: which name it asks for.

Rules kept here:

1. What cannot be read to the last byte is refused, never treated as "no name" (RFC 8446 4.1.2, RFC 6066 3).
2. Cutting changes nothing: records and segments may be split anywhere, within the limit.
"""

from __future__ import annotations

from netsandbox_proxy.parsers.authority import ALPHA, DIGITS
from netsandbox_proxy.parsers.errors import ProtocolError

HANDSHAKE = 22
CLIENT_HELLO = 1
MAX_FRAGMENT = 16384
RECORD_HEADER = 5
MAX_HELLO = 65536
SERVER_NAME, ALPN = 0, 16
# Encrypted Client Hello and the drafts of it that were deployed, and its forerunner ESNI.
ECH = frozenset({0xFE08, 0xFE09, 0xFE0A, 0xFE0B, 0xFE0C, 0xFE0D, 0xFFCE})
NAME_BYTES = ALPHA + DIGITS + b"-_."


def unreadable(detail: str) -> ProtocolError:
    return ProtocolError("tls-unreadable", detail)


class ClientHello:
    __slots__ = ("alpn", "ech", "sni")

    def __init__(self, sni: bytes | None, alpn: list[bytes], *, ech: bool) -> None:
        self.sni = sni  # as spelled
        self.alpn = alpn
        self.ech = ech


class ClientHelloReader:
    """Reassembles the hello from its records. It looks at copies; the caller keeps the bytes to pass them on."""

    __slots__ = ("_buffer", "_hello", "_limit", "_wire")

    def __init__(self, limit: int = MAX_HELLO) -> None:
        self._limit = limit
        self._wire = 0  # bytes on the wire up to the end of the current record
        self._buffer = bytearray()
        self._hello = bytearray()

    def feed(self, data: bytes) -> ClientHello | None:
        """The hello once it is complete, or None: more is needed."""
        buffer = self._buffer
        buffer += data
        while buffer:
            end = self._record_end(buffer)
            if end is None or len(buffer) < end:
                return None
            self._hello += buffer[RECORD_HEADER:end]
            del buffer[:end]
            self._wire += end
            hello = self._complete()
            if hello is not None:
                return parse_hello(hello)
        return None

    def _record_end(self, buffer: bytearray) -> int | None:
        if buffer[0] != HANDSHAKE or (len(buffer) > 1 and buffer[1] != 3):
            raise unreadable("not a TLS handshake record")
        if len(buffer) < RECORD_HEADER:
            return None
        length = int.from_bytes(buffer[3:5], "big")
        if not 0 < length <= MAX_FRAGMENT:
            raise unreadable("a TLS record of impossible length")
        if self._wire + RECORD_HEADER + length > self._limit:
            raise unreadable("a ClientHello past the limit")
        if not self._hello and len(buffer) > RECORD_HEADER and buffer[RECORD_HEADER] != CLIENT_HELLO:
            raise unreadable("the first handshake message is not a ClientHello")
        return RECORD_HEADER + length

    def _complete(self) -> bytes | None:
        if len(self._hello) < 4:
            return None
        end = 4 + int.from_bytes(self._hello[1:4], "big")
        if end > self._limit:
            raise unreadable("a ClientHello past the limit")
        if len(self._hello) > end:
            raise unreadable("bytes behind the ClientHello in its own record")
        return bytes(self._hello[4:]) if len(self._hello) == end else None


class _Cursor:
    """Reads length-prefixed fields; a field that runs over the end is an error."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise unreadable("a field that runs over its end")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))


def parse_hello(body: bytes) -> ClientHello:
    """Parse the body of a ClientHello message."""
    cursor = _Cursor(body)
    if cursor.number(2) >> 8 != 3:
        raise unreadable("a ClientHello of an unknown version")
    cursor.take(32)
    session, suites, compression = cursor.vector(1), cursor.vector(2), cursor.vector(1)
    if len(session) > 32 or len(suites) < 2 or len(suites) % 2 or not compression:
        raise unreadable("a ClientHello with impossible fields")
    extensions = _parse_extensions(cursor)
    sni = _parse_server_name(extensions[SERVER_NAME]) if SERVER_NAME in extensions else None
    alpn = _parse_alpn(extensions[ALPN]) if ALPN in extensions else []
    return ClientHello(sni, alpn, ech=not ECH.isdisjoint(extensions))


def _parse_extensions(cursor: _Cursor) -> dict[int, bytes]:
    extensions: dict[int, bytes] = {}
    if not cursor.left:
        return extensions
    block = cursor.vector(2)
    if cursor.left:
        raise unreadable("bytes behind the extensions")
    at, end = 0, len(block)
    while at < end:  # fifteen of them in every hello: by index, which is three times as fast as by cursor
        if end - at < 4:
            raise unreadable("a field that runs over its end")
        kind, size = block[at] << 8 | block[at + 1], block[at + 2] << 8 | block[at + 3]
        if kind in extensions:
            raise unreadable("an extension that comes twice")
        if size > end - at - 4:
            raise unreadable("a field that runs over its end")
        extensions[kind] = block[at + 4 : at + 4 + size]
        at += 4 + size
    return extensions


def _parse_server_name(raw: bytes) -> bytes:
    outer = _Cursor(raw)
    names = _Cursor(outer.vector(2))
    kind, name = names.number(1), names.vector(2)
    if outer.left or names.left:
        raise unreadable("more than one server name")
    if kind != 0:
        raise unreadable("a server name of an unknown kind")
    if not 0 < len(name) <= 253 or name.translate(None, NAME_BYTES):
        raise unreadable("a server name that is no host name")
    if not all(0 < len(label) <= 63 for label in name.split(b".")):
        raise unreadable("a server name with an impossible label")
    return name


def _parse_alpn(raw: bytes) -> list[bytes]:
    outer = _Cursor(raw)
    names = _Cursor(outer.vector(2))
    protocols: list[bytes] = []
    while names.left:
        protocols.append(names.vector(1))
    if outer.left or not protocols or not all(protocols):
        raise unreadable("an ALPN list that cannot be read")
    return protocols
