"""The head of an HTTP/1 message: bytes in, one value out.

Rules kept here:

1. A head is understood whole or not at all; nothing of it is acted on before the blank line.
2. Whatever two HTTP parsers could read differently (bare LF or CR, folding, space before the colon, control bytes, two
   Host headers, padding around Content-Length) is an error, so the origin sees what was decided on.
3. Memory is bounded by the limits, time is linear however the bytes are cut.
"""

from __future__ import annotations

from netsandbox.runtime.http.authority import ALPHA, DIGITS, VISIBLE, split_authority
from netsandbox.runtime.http.errors import ProtocolError, malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LINE = 16384
MAX_HEAD = 65536
MAX_HEADERS = 200
MAX_CACHED_NAMES = 256
MAX_CACHED_NAME = 64  # bytes
MAX_CACHED_HEADS = 512
MAX_CACHED_HEAD = 1024  # bytes
TOKEN = ALPHA + DIGITS + b"!#$%&'*+-.^_`|~"
CONTROLS = bytes(byte for byte in range(0x20) if byte != 0x09) + b"\x7f"
# Their value decides where a message ends or where it goes, so not even harmless padding is tolerated around it.
UNPADDED = frozenset({b"host", b"content-length", b"transfer-encoding"})


def is_token(raw: bytes) -> bool:
    return bool(raw) and not raw.translate(None, TOKEN)


class HeaderNames(dict[bytes, bytes]):
    """Lower-case forms of header names, by their spelling; each key is a token. A full cache keeps no more."""

    def __missing__(self, name: bytes) -> bytes:
        if not is_token(name):
            raise malformed("a header line that is not `name: value`")
        lower = name.lower()
        if len(self) < MAX_CACHED_NAMES and len(name) <= MAX_CACHED_NAME:
            self[name] = lower
        return lower


LOWER_NAMES = HeaderNames()


def parse_header(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Name as spelled, name in lower case, and value without the optional white space around it."""
    name, colon, rest = line.partition(b":")
    lower = LOWER_NAMES[name if colon else b""]
    value = rest.strip(b" \t")
    if len(value.translate(None, CONTROLS)) != len(value):
        raise malformed("a control byte in a header value")
    return name, lower, value


class LineBlock:
    """Collects CRLF lines up to the empty one. `raw` is the block as it came, the empty line included."""

    __slots__ = ("_buffer", "_limit_head", "_limit_line", "_limit_lines", "_lines", "_scan", "_start", "raw")

    def __init__(self, limit_line: int, limit_head: int, limit_lines: int) -> None:
        self._limit_line = limit_line
        self._limit_head = limit_head
        self._limit_lines = limit_lines
        self._buffer = bytearray()
        self._start = 0  # where the unfinished line begins
        self._scan = 0  # up to where it is known to hold no LF
        self._lines: list[bytes] = []
        self.raw = b""

    def feed(self, data: bytes) -> tuple[list[bytes], bytes] | None:
        """The lines and what followed them, or None: more is needed."""
        if not self._buffer and (lines := self._split_whole(data)):
            return lines, data[len(self.raw) :]
        buffer = self._buffer
        buffer += data
        while (found := buffer.find(b"\n", self._scan)) >= 0:
            self._check(found + 1)
            line = bytes(buffer[self._start : found + 1])
            if not line.endswith(b"\r\n") or line.find(b"\r") != len(line) - 2:
                raise malformed("a line that does not end in CRLF, or CR inside it")
            self._start = self._scan = found + 1
            if line == b"\r\n":
                self.raw = bytes(buffer[: self._start])
                return self._lines, bytes(buffer[self._start :])
            self._lines.append(line[:-2])
            if len(self._lines) > self._limit_lines:
                raise ProtocolError("limit", "too many header lines", 431)
        self._check(len(buffer))
        self._scan = len(buffer)
        return None

    def _split_whole(self, data: bytes) -> list[bytes] | None:
        """The lines of a block that came whole and within the limits, as nearly always; None: read it line by line."""
        end = data.find(b"\r\n\r\n") + 4
        if not 4 < end <= min(self._limit_line, self._limit_head):
            return None
        raw = data[:end]
        lines = raw.split(b"\r\n")
        if raw.count(b"\r") != len(lines) - 1 or raw.count(b"\n") != len(lines) - 1:
            return None  # a bare CR or LF, which the slow way refuses
        del lines[-2:]  # the empty line, and what stands behind it
        if not lines[0] or len(lines) > self._limit_lines:
            return None
        self.raw = raw
        self._lines = lines
        self._buffer += data
        self._start = self._scan = end
        return lines

    def _check(self, end: int) -> None:
        if end - self._start > self._limit_line or end > self._limit_head:
            raise ProtocolError("limit", "a head that is too long", 431)


class Headers:
    """The header lines of a message. `headers` has names as spelled; `padded` is set if a name of UNPADDED is."""

    __slots__ = ("_values", "headers", "lower_names", "padded")

    def __init__(self, lines: list[bytes]) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.lower_names: list[bytes] = []
        self.padded = False
        self._values: dict[bytes, list[bytes]] = {}
        for line in lines:
            name, lower, value = parse_header(line)
            self.headers.append((name, value))
            self.lower_names.append(lower)
            if lower in self._values:
                self._values[lower].append(value)
            else:
                self._values[lower] = [value]
            if lower in UNPADDED and line[len(lower) + 1 :].removeprefix(b" ") != value:
                self.padded = True

    def get_all(self, name: bytes) -> list[bytes]:
        """The values of every header of that name, in order; *name* is in lower case."""
        return self._values.get(name) or []


class RequestHead(Headers):
    __slots__ = ("method", "raw", "target", "version")

    def __init__(self, method: bytes, target: bytes, version: bytes, lines: list[bytes], raw: bytes) -> None:
        super().__init__(lines)
        self.method = method
        self.target = target
        self.version = version  # b"HTTP/1.1" or b"HTTP/1.0"
        self.raw = raw

    @property
    def host(self) -> bytes | None:
        """The Host header; None only in HTTP/1.0."""
        values = self.get_all(b"host")
        return values[0] if values else None


class HeadReader:
    """Reads one request head."""

    __slots__ = ("_block",)

    def __init__(
        self, limit_line: int = MAX_LINE, limit_head: int = MAX_HEAD, limit_headers: int = MAX_HEADERS
    ) -> None:
        self._block = LineBlock(limit_line, limit_head, limit_headers + 1)

    def feed(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """The head and what followed it, or None: more is needed."""
        block = self._block.feed(data)
        if block is None:
            return None
        lines, leftover = block
        return parse_request(lines, self._block.raw), leftover


def parse_request(lines: list[bytes], raw: bytes) -> RequestHead:
    if not lines:
        raise malformed("an empty line where a request should begin")
    method, target, version = _parse_request_line(lines[0])
    head = RequestHead(method, target, version, lines[1:], raw)
    if head.padded:
        raise malformed("padding around a header that frames or routes the message")
    _check_host(head)
    return head


def _parse_request_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    parts = line.split(b" ")
    if len(parts) != 3:
        raise malformed("a request line that is not `method target version`")
    method, target, version = parts
    if not is_token(method) or not target or target.translate(None, VISIBLE):
        raise malformed("a method or target that cannot be read")
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise _version_error(method, version)
    return method, target, version


def _version_error(method: bytes, version: bytes) -> ProtocolError:
    if method == b"PRI":
        return ProtocolError("unsupported", "HTTP/2 is not spoken here")
    digits = version[5:].split(b".")
    if version.startswith(b"HTTP/") and len(version) <= 8 and all(part.isdigit() for part in digits):
        return ProtocolError("unsupported", "an HTTP version that is not 1.0 or 1.1", 505)
    return malformed("not an HTTP version")


def _check_host(head: RequestHead) -> None:
    hosts = head.get_all(b"host")
    if len(hosts) > 1:
        raise malformed("more than one Host header")
    if hosts:
        split_authority(hosts[0], 80)
    elif head.version == b"HTTP/1.1":
        raise malformed("HTTP/1.1 without a Host header")


class HeadCache:
    """Parsed request heads, by their bytes. Bounded; the oldest entry is dropped first.

    Parsing is a pure function of the bytes, and clients repeat their heads exactly, so a repeated head need not be
    parsed again. Only a whole head that passed every check, the session's token included, is stored, and bytes that
    came match it only if they are that head and nothing more: part of a head never does. No decision is stored: it is
    made again each time (INV-3).
    """

    __slots__ = ("_parsed", "get")

    def __init__(self) -> None:
        self._parsed: dict[bytes, Any] = {}
        self.get = self._parsed.get

    def add(self, head: bytes, parsed: Any) -> None:
        if len(head) > MAX_CACHED_HEAD:
            return
        if len(self._parsed) >= MAX_CACHED_HEADS:
            del self._parsed[next(iter(self._parsed))]
        self._parsed[head] = parsed


def basic_token(head: RequestHead) -> bytes | None:
    """The password of `Proxy-Authorization: Basic`, which is where a session's token travels; None if there is none."""
    values = head.get_all(b"proxy-authorization")
    if len(values) != 1:
        return None
    scheme, _, encoded = values[0].partition(b" ")
    if scheme.lower() != b"basic":
        return None
    import binascii

    try:
        pair = binascii.a2b_base64(encoded.strip(b" "), strict_mode=True)
    except binascii.Error:
        return None
    _, colon, password = pair.partition(b":")
    return password if colon else None
