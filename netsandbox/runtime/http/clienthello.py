"""Parses the first TLS message of a client, for its server name.

Rules kept here:

1. What cannot be read to the last byte is refused, never treated as "no name" (RFC 8446 4.1.2, RFC 6066 3).
2. Cutting changes nothing: records and segments may be split anywhere, within the limit.
"""

from __future__ import annotations

from _struct import Struct

from netsandbox.runtime.http.authority import ALPHA, DIGITS
from netsandbox.runtime.http.errors import ProtocolError

HANDSHAKE = 22
CLIENT_HELLO = 1
MAX_FRAGMENT = 16384
RECORD_HEADER = 5
MESSAGE_START = RECORD_HEADER + 4  # behind the header of the handshake message
MAX_LABEL = 63
MAX_HELLO = 65536
SERVER_NAME, ALPN = 0, 16
# Encrypted Client Hello and the drafts of it that were deployed, and its forerunner ESNI.
ECH = frozenset({0xFE08, 0xFE09, 0xFE0A, 0xFE0B, 0xFE0C, 0xFE0D, 0xFFCE})
NAME_BYTES = ALPHA + DIGITS + b"-_."
_KIND_AND_SIZE = Struct(">HH").unpack_from


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
        if not self._wire and not self._buffer and (end := _whole_record(data)) and end <= self._limit:
            try:
                return parse_hello(data[MESSAGE_START:end])
            except ProtocolError:
                pass  # refused once more below, which keeps what later bytes are refused by
        return self._feed_slowly(data)

    def _feed_slowly(self, data: bytes) -> ClientHello | None:
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


def _whole_record(data: bytes) -> int:
    """Where the first record ends if it holds exactly one ClientHello, as nearly always; 0 otherwise."""
    if len(data) < MESSAGE_START or data[0] != HANDSHAKE or data[1] != 3 or data[5] != CLIENT_HELLO:
        return 0
    length = data[3] << 8 | data[4]
    if length > MAX_FRAGMENT or length != 4 + (data[6] << 16 | data[7] << 8 | data[8]):
        return 0
    end = RECORD_HEADER + length
    return end if len(data) >= end else 0


def parse_hello(body: bytes) -> ClientHello:
    """Parse the body of a ClientHello message, by index: every tunnel pays for it."""
    try:
        return _parse_hello(body)
    except IndexError:
        raise over_end() from None


def over_end() -> ProtocolError:
    return unreadable("a field that runs over its end")


def _parse_hello(body: bytes) -> ClientHello:
    """A field that runs over the end moves `at` past it, so that the next index or the last comparison fails."""
    major, _minor = body[0], body[1]
    if major != 3:
        raise unreadable("a ClientHello of an unknown version")
    session = body[34]
    at = 35 + session
    suites = body[at] << 8 | body[at + 1]
    at += 2 + suites
    compression = body[at]
    at += 1 + compression
    if at > len(body):
        raise over_end()
    if session > 32 or suites < 2 or suites % 2 or not compression:
        raise unreadable("a ClientHello with impossible fields")
    if at == len(body):
        return ClientHello(None, [], ech=False)
    extensions = _find_extensions(body, at)
    sni = _parse_server_name(body, extensions[SERVER_NAME]) if SERVER_NAME in extensions else None
    alpn = _parse_alpn(body, extensions[ALPN]) if ALPN in extensions else []
    return ClientHello(sni, alpn, ech=not ECH.isdisjoint(extensions))


def _find_extensions(body: bytes, at: int) -> dict[int, int]:
    """Where the data of each extension begins; its length stands in the two bytes before."""
    end = at + 2 + (body[at] << 8 | body[at + 1])
    if end > len(body):
        raise over_end()
    if end < len(body):
        raise unreadable("bytes behind the extensions")
    at += 2
    found: dict[int, int] = {}
    while at < end:
        if end - at < 4:
            raise over_end()
        kind, size = _KIND_AND_SIZE(body, at)
        if kind in found:
            raise unreadable("an extension that comes twice")
        at += 4
        found[kind] = at
        at += size
        if at > end:
            raise over_end()
    return found


def _parse_server_name(body: bytes, at: int) -> bytes:
    size = body[at - 2] << 8 | body[at - 1]
    if size < 5:
        raise over_end()
    names, length = body[at] << 8 | body[at + 1], body[at + 3] << 8 | body[at + 4]
    if names > size - 2 or length > names - 3:
        raise over_end()
    if names < size - 2 or length < names - 3:
        raise unreadable("more than one server name")
    if body[at + 2] != 0:
        raise unreadable("a server name of an unknown kind")
    name = body[at + 5 : at + 5 + length]
    if not 0 < length <= 253 or name.translate(None, NAME_BYTES):
        raise unreadable("a server name that is not a host name")
    labels = name.split(b".")
    if b"" in labels or (length > MAX_LABEL and max(map(len, labels)) > MAX_LABEL):
        raise unreadable("a server name with an impossible label")
    return name


def _parse_alpn(body: bytes, at: int) -> list[bytes]:
    size = body[at - 2] << 8 | body[at - 1]
    if size < 2:
        raise over_end()
    end = at + 2 + (body[at] << 8 | body[at + 1])
    last = at + size
    if end > last:
        raise over_end()
    protocols: list[bytes] = []
    at += 2
    while at < end:
        start = at + 1
        at = start + body[at]
        if at > end:
            raise over_end()
        protocols.append(body[start:at])
    if end < last or not protocols or b"" in protocols:
        raise unreadable("an ALPN list that cannot be read")
    return protocols
