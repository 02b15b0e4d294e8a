"""Finds the host of a connection's first request: bytes in, one name out. No sockets.

Rules:
1. A head is parsed completely or refused, and read as the server behind reads it: CRLF only, no folding, no control
   bytes, exactly one Host, and no second host in the target.
2. MAX_HEAD bounds memory and time for every split of the bytes.
3. Only names that no other site can have (`NAME.localhost`, RFC 6761) are routed, so a page whose name was rebound to
   127.0.0.1 reaches nothing.
"""

from __future__ import annotations

MAX_HEAD = 16 * 1024
_DIGITS = b"0123456789"
_ALPHA = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TOKEN = _ALPHA + _DIGITS + b"!#$%&'*+-.^_`|~"
_NAME = _ALPHA + _DIGITS + b"-._"
_LITERAL = b"abcdefABCDEF:." + _DIGITS
_VISIBLE = bytes(range(0x21, 0x7F)) + bytes(range(0x80, 0x100))
_CONTROLS = bytes(byte for byte in range(0x20) if byte != 0x09) + b"\x7f"


class HeadError(Exception):
    """The client gets `status` and this text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status = status
        self.text = text


class RequestHost:
    """Call `feed` until it returns the host in lower case without port. `held` has every byte so far."""

    __slots__ = ("_host", "_start", "held", "method")

    def __init__(self) -> None:
        self.held = bytearray()
        self.method = b""
        self._start = 0  # start of the incomplete line
        self._host: str | None = None

    def feed(self, data: bytes) -> str | None:
        """The host, or None if more bytes are needed."""
        held, scan = self.held, len(self.held)
        held += data
        if held and held[0] not in _TOKEN:
            raise HeadError(400, "This is a door for HTTP/1.1 without TLS.")
        while (found := held.find(b"\n", scan)) >= 0:
            if found >= MAX_HEAD:
                break
            line, self._start = bytes(held[self._start : found + 1]), found + 1
            scan = self._start
            if line == b"\r\n" and self.method:
                return self._conclude()
            self._read(line)
        if len(held) > MAX_HEAD:
            raise HeadError(431, "The head of the request is too long.")
        return None

    def _conclude(self) -> str:
        if self._host is None:
            raise HeadError(400, "The request has no Host header.")
        return self._host

    def _read(self, line: bytes) -> None:
        text = line[:-2]
        if line[-2:] != b"\r\n" or len(text.translate(None, _CONTROLS)) != len(text):
            raise HeadError(400, "A line of the request does not end in CRLF or has a control byte in it.")
        if not self.method:
            self.method = parse_request_line(text)
            return
        name, colon, value = text.partition(b":")
        if not colon or not is_made_of(name, _TOKEN):
            raise HeadError(400, "A line of the request is not `name: value`.")
        if name.lower() == b"host":
            if self._host is not None:
                raise HeadError(400, "The request has more than one Host header.")
            self._host = parse_host(value.strip(b" \t"))


def is_made_of(raw: bytes, alphabet: bytes) -> bool:
    return bool(raw) and not raw.translate(None, alphabet)


def parse_request_line(line: bytes) -> bytes:
    """The method of the request line."""
    parts = line.split(b" ")
    if len(parts) != 3 or not is_made_of(parts[0], _TOKEN) or not is_made_of(parts[1], _VISIBLE):
        raise HeadError(400, "The request does not begin with `method target version`.")
    if parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise HeadError(505, "Only HTTP/1.1 is spoken here.")
    if parts[1] != b"*" and not parts[1].startswith(b"/"):  # a host in the target would take precedence over Host
        raise HeadError(400, "The target of the request is not a path.")
    return parts[0]


def parse_host(value: bytes) -> str:
    """The host without port and without the trailing dot."""
    host, colon, port = value.rpartition(b":") if value[-1:] != b"]" else (value, b"", b"")
    if not colon:
        host = value
    elif not is_made_of(port, _DIGITS) or len(port) > 5:
        raise HeadError(400, "The Host header cannot be read.")
    literal = host[:1] == b"[" and host[-1:] == b"]" and is_made_of(host[1:-1], _LITERAL)
    if not literal and not is_made_of(host, _NAME):
        raise HeadError(400, "The Host header cannot be read.")
    return host.decode("ascii").lower().removesuffix(".")


def route(host: str, name: str) -> tuple[str, int | None] | None:
    """("main", None), ("port", 3000), or None if *host* is not a name of this session."""
    own = f"{name.lower()}.localhost"
    if host == own:
        return "main", None
    label, dot, rest = host.partition(".")
    if not dot or rest != own or not (label.isascii() and label.isdigit()) or label[0] == "0" or len(label) > 5:
        return None
    port = int(label)
    return ("port", port) if port <= 65535 else None
