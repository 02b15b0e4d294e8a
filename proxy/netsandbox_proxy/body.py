"""Where a body ends. Its bytes pass through verbatim, but never one whose framing has not been understood.

Rules kept here:

1. One framing or none: Content-Length and Transfer-Encoding together, either of them twice, or any value that is not
   plain, is an error. Nothing is repaired, since what we repair the other side may read unrepaired.
2. A chunk-size line and the trailer section are withheld until they have been checked.
"""

from __future__ import annotations

from netsandbox_proxy.authority import DIGITS
from netsandbox_proxy.errors import ProtocolError, malformed
from netsandbox_proxy.head import CONTROLS, LineBlock, RequestHead, parse_header

NONE, LENGTH, CHUNKED, CLOSE = "none", "length", "chunked", "close"
MAX_LENGTH = 2**63 - 1
SIZE_LINE_LIMIT = 256
TRAILER_LIMIT = 8192
TRAILER_LINES = 50
HEX = DIGITS + b"abcdefABCDEF"
# A trailer that could re-route or re-frame the message for a reader that merges trailers into the head.
FORBIDDEN_TRAILERS = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"te"})


class Framing:
    """`kind` is NONE, LENGTH, CHUNKED or, for responses only, CLOSE."""

    __slots__ = ("kind", "length")

    def __init__(self, kind: str, length: int = 0) -> None:
        self.kind = kind
        self.length = length

    def __repr__(self) -> str:
        return f"Framing({self.kind!r}, {self.length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Framing) and (self.kind, self.length) == (other.kind, other.length)

    def __hash__(self) -> int:
        return hash((self.kind, self.length))


def framing(head: RequestHead) -> Framing:
    """The framing of a request."""
    found = header_framing(head.get_all(b"content-length"), head.get_all(b"transfer-encoding"), head.version)
    return found or Framing(NONE)


def header_framing(lengths: list[bytes], codings: list[bytes], version: bytes) -> Framing | None:
    """What the headers say; None when they say nothing."""
    if codings:
        if lengths or len(codings) > 1 or codings[0].lower() != b"chunked" or version != b"HTTP/1.1":
            raise malformed("a Transfer-Encoding that is not `chunked` alone")
        return Framing(CHUNKED)
    if not lengths:
        return None
    if len(lengths) > 1:
        raise malformed("more than one Content-Length")
    length = parse_length(lengths[0])
    return Framing(LENGTH, length)


def parse_length(raw: bytes) -> int:
    if not raw or len(raw) > 19 or raw.translate(None, DIGITS) or (raw.startswith(b"0") and raw != b"0"):
        raise malformed("a Content-Length that is not a plain decimal number")
    length = int(raw)
    if length > MAX_LENGTH:
        raise malformed("a Content-Length past all bounds")
    return length


class BodyReader:
    """Follows one body. `extensions` tolerates chunk extensions, which some origins send and no client needs."""

    __slots__ = ("_extensions", "_line", "_remaining", "_step", "_trailers", "done")

    def __init__(self, framing: Framing, *, extensions: bool = False) -> None:
        self._extensions = extensions
        self._remaining = framing.length
        self._line = bytearray()
        self._trailers = LineBlock(TRAILER_LIMIT, TRAILER_LIMIT, TRAILER_LINES)
        self.done = framing.kind == NONE or (framing.kind == LENGTH and framing.length == 0)
        self._step = {CHUNKED: self._size, CLOSE: self._until_close}.get(framing.kind, self._counted)

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """What may be forwarded now, and what lies behind the end of the body."""
        out: list[bytes] = []
        while data and not self.done:
            passed, data = self._step(data)
            out.append(passed)
        return (out[0] if len(out) == 1 else b"".join(out)), data

    def _until_close(self, data: bytes) -> tuple[bytes, bytes]:
        return data, b""

    def _counted(self, data: bytes) -> tuple[bytes, bytes]:
        passed, rest = self._take(data)
        self.done = self._remaining == 0
        return passed, rest

    def _take(self, data: bytes) -> tuple[bytes, bytes]:
        if len(data) <= self._remaining:
            self._remaining -= len(data)
            return data, b""
        cut, self._remaining = self._remaining, 0
        return data[:cut], data[cut:]

    def _size(self, data: bytes) -> tuple[bytes, bytes]:
        end = data.find(b"\n") + 1
        self._line += data[:end] if end else data
        if len(self._line) > SIZE_LINE_LIMIT:
            raise ProtocolError("limit", "a chunk-size line that is too long")
        if not end:
            return b"", b""
        line = bytes(self._line)
        self._remaining = parse_chunk_size(line, extensions=self._extensions)
        self._line.clear()
        self._step = self._chunk if self._remaining else self._trailer
        if not self._remaining:
            self._line += line  # the last chunk's line goes out with the trailers, once those are known to be clean
            return b"", data[end:]
        return line, data[end:]

    def _chunk(self, data: bytes) -> tuple[bytes, bytes]:
        passed, rest = self._take(data)
        if not self._remaining:
            self._step = self._chunk_end
        return passed, rest

    def _chunk_end(self, data: bytes) -> tuple[bytes, bytes]:
        need = 2 - len(self._line)
        self._line += data[:need]
        if not b"\r\n".startswith(self._line):
            raise malformed("a chunk that does not end in CRLF")
        if len(self._line) < 2:
            return b"", b""
        self._line.clear()
        self._step = self._size
        return b"\r\n", data[need:]

    def _trailer(self, data: bytes) -> tuple[bytes, bytes]:
        block = self._trailers.feed(data)
        if block is None:
            return b"", b""
        lines, rest = block
        for line in lines:
            name, _ = parse_header(line)
            if name.lower() in FORBIDDEN_TRAILERS:
                raise malformed("a trailer that frames or routes the message")
        self.done = True
        return bytes(self._line) + self._trailers.raw, rest


def parse_chunk_size(line: bytes, *, extensions: bool) -> int:
    """The size in a whole chunk-size line, CRLF included."""
    if not line.endswith(b"\r\n") or line.find(b"\r") != len(line) - 2:
        raise malformed("a chunk-size line that does not end in CRLF")
    text = line[:-2]
    digits = text
    if extensions:
        digits = text.partition(b";")[0].rstrip(b" \t")
        if len(text.translate(None, CONTROLS)) != len(text):
            raise malformed("a control byte in a chunk extension")
    if not digits or len(digits) > 16 or digits.translate(None, HEX):
        raise malformed("a chunk size that is not plain hexadecimal")
    size = int(digits, 16)
    if size > MAX_LENGTH:
        raise malformed("a chunk size past all bounds")
    return size
