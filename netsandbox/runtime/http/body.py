"""Finds the end of a body. Its bytes pass unchanged, but none before its framing has been understood.

Rules kept here:

1. One framing or none: Content-Length and Transfer-Encoding together, either of them twice, or any value that is not
   plain, is an error. Nothing is repaired, since what we repair the other side may read unrepaired.
2. A chunk-size line and the trailer section are withheld until they have been checked.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.runtime.http.authority import DIGITS
from netsandbox.runtime.http.errors import ProtocolError, malformed
from netsandbox.runtime.http.head import CONTROLS, LineBlock, RequestHead, parse_header

NONE, LENGTH, CHUNKED, CLOSE = "none", "length", "chunked", "close"
MAX_LENGTH = 2**63 - 1
MAX_SIZE_LINE = 256
MAX_TRAILER = 8192
MAX_TRAILER_LINES = 50
HEX = DIGITS + b"abcdefABCDEF"
# A trailer that could re-route or re-frame the message for a reader that merges trailers into the head.
FORBIDDEN_TRAILERS = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"te"})


@frozen
class Framing:
    """`kind` is NONE, LENGTH, CHUNKED or, for responses only, CLOSE."""

    kind: str
    length: int = 0


NO_BODY = Framing(NONE)
IN_CHUNKS = Framing(CHUNKED)
UNTIL_CLOSE = Framing(CLOSE)


def framing(head: RequestHead) -> Framing:
    """The framing of a request."""
    found = header_framing(head.get_all(b"content-length"), head.get_all(b"transfer-encoding"), head.version)
    return found or NO_BODY


def header_framing(lengths: list[bytes], codings: list[bytes], version: bytes) -> Framing | None:
    """The framing in the headers; None if they have none."""
    if codings:
        if lengths or len(codings) > 1 or codings[0].lower() != b"chunked" or version != b"HTTP/1.1":
            raise malformed("a Transfer-Encoding that is not `chunked` alone")
        return IN_CHUNKS
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

    __slots__ = ("_clean", "_extensions", "_held", "_line", "_remaining", "_step", "_trailers", "done")

    def __init__(self, framing: Framing, *, extensions: bool = False) -> None:
        self._extensions = extensions
        self._remaining = framing.length
        self._line = bytearray()
        self._trailers: LineBlock | None = None  # from the last chunk on
        self._held = bytearray()  # bytes of earlier calls that wait for the rest of their line or section
        self._clean = 0  # how far into this call's bytes everything has been understood
        self.done = framing.kind == NONE or (framing.kind == LENGTH and framing.length == 0)
        if framing.kind == CHUNKED:
            self._step = self._size
        else:
            self._step = self._until_close if framing.kind == CLOSE else self._counted

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """The bytes that may be forwarded now, and those after the end of the body."""
        if self.done:
            return b"", data
        if self._step == self._counted and len(data) <= self._remaining:
            self.passed(len(data))
            return data, b""
        at = self._clean = 0
        while at < len(data) and not self.done:
            at = self._step(data, at)
        return self._release(data, at), data[at:]

    @property
    def unread(self) -> int:
        """How many of the next bytes are body for certain, whatever they are; the rest is not known yet."""
        if self.done or self._held:
            return 0
        return MAX_LENGTH if self._step == self._until_close else self._remaining

    def passed(self, count: int) -> None:
        """*count* of the `unread` bytes went past us without being fed."""
        if self._step == self._until_close:
            return
        self._remaining -= count
        if not self._remaining:
            self.done = self._step == self._counted
            if not self.done:
                self._step = self._chunk_end

    def _release(self, data: bytes, at: int) -> bytes:
        clean = self._clean
        if not clean:
            self._held += data[:at]
            return b""
        forward = bytes(self._held) + data[:clean] if self._held else data[:clean]
        self._held[:] = data[clean:at]
        return forward

    # Each step looks at data from `at` on, moves `_clean` past the bytes that it understood, and returns where it
    # stopped.

    def _until_close(self, data: bytes, at: int) -> int:
        self._clean = len(data)
        return len(data)

    def _counted(self, data: bytes, at: int) -> int:
        at = self._skip(data, at)
        self.done = self._remaining == 0
        return at

    def _skip(self, data: bytes, at: int) -> int:
        count = min(self._remaining, len(data) - at)
        self._remaining -= count
        self._clean = at + count
        return self._clean

    def _size(self, data: bytes, at: int) -> int:
        found = data.find(b"\n", at, at + MAX_SIZE_LINE + 1)
        end = found + 1 if found >= 0 else len(data)
        if len(self._line) + end - at > MAX_SIZE_LINE:
            raise ProtocolError("limit", "a chunk-size line that is too long")
        self._line += data[at:end]
        if found < 0:
            return end
        self._remaining = parse_chunk_size(bytes(self._line), extensions=self._extensions)
        self._line.clear()
        if self._remaining:
            self._step, self._clean = self._chunk, end
        else:
            self._step = self._trailer  # the last chunk's line goes out with the trailers, once those are clean
        return end

    def _chunk(self, data: bytes, at: int) -> int:
        at = self._skip(data, at)
        if not self._remaining:
            self._step = self._chunk_end
        return at

    def _chunk_end(self, data: bytes, at: int) -> int:
        end = min(at + 2 - len(self._line), len(data))
        self._line += data[at:end]
        if not b"\r\n".startswith(self._line):
            raise malformed("a chunk that does not end in CRLF")
        if len(self._line) == 2:
            self._line.clear()
            self._step, self._clean = self._size, end
        return end

    def _trailer(self, data: bytes, at: int) -> int:
        if self._trailers is None:
            self._trailers = LineBlock(MAX_TRAILER, MAX_TRAILER, MAX_TRAILER_LINES)
        block = self._trailers.feed(data[at:])
        if block is None:
            return len(data)
        lines, rest = block
        for line in lines:
            _, lower, _ = parse_header(line)
            if lower in FORBIDDEN_TRAILERS:
                raise malformed("a trailer that frames or routes the message")
        self.done = True
        self._clean = len(data) - len(rest)
        return self._clean


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
