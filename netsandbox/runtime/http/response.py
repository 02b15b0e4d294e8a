"""An origin's response, passed to the client verbatim or with its head rewritten, and with a known end.

Rules kept here:

1. No byte of a head is passed on before that head parsed whole, so the client of a broken origin gets our 502.
2. What lies behind the end of a response is never forwarded: it is handed back as leftover, and only a fault or an
   attack puts anything there.
"""

from __future__ import annotations

from netsandbox.runtime.http.authority import DIGITS
from netsandbox.runtime.http.body import CLOSE, LENGTH, NO_BODY, UNTIL_CLOSE, BodyReader, Framing, header_framing
from netsandbox.runtime.http.errors import ProtocolError, malformed
from netsandbox.runtime.http.head import CONTROLS, LOWER_NAMES, MAX_HEAD, LineBlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Rewrite = Callable[[list[bytes], bytes], bytes]  # the lines of a head, and its bytes -> the bytes for the client

MAX_INTERIM = 16
MAX_HEADERS = 500
BODILESS = frozenset({204, 304})
READ = frozenset({b"content-length", b"transfer-encoding", b"connection"})  # all other headers are only checked
NO_VALUES: list[bytes] = []


class ResponseReader:
    """Follows the response to one request. After `upgraded` everything is opaque and passed on as it comes."""

    __slots__ = (
        "_block",
        "_body",
        "_interim",
        "_method",
        "_rewrite",
        "_upgrade",
        "close_delimited",
        "done",
        "keep_alive",
        "length",
        "started",
        "status",
        "upgraded",
    )

    def __init__(self, method: bytes, *, upgrade: bool = True, rewrite: Rewrite | None = None) -> None:
        self._method = method
        self._rewrite = rewrite
        self._upgrade = upgrade  # False: the request asked for none, so a 101 is a fault
        self._interim = 0
        self._block = _new_block()
        self._body: BodyReader | None = None
        self.status = 0
        self.started = False
        self.done = False
        self.upgraded = False
        self.keep_alive = False
        self.close_delimited = False
        self.length: int | None = None  # of the body, if the head has it

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """The bytes for the client, and those after the end of the response."""
        try:
            forward, leftover = self._feed(data)
        except ProtocolError as error:
            raise ProtocolError(error.reason, f"origin: {error.detail}", 502) from None
        self.started = self.started or bool(forward)
        if leftover:
            self.keep_alive = False  # nobody asked for these bytes: the next response must not begin with them
        return forward, leftover

    @property
    def unread(self) -> int:
        """How many of the next bytes are body for certain."""
        return self._body.unread if self._body is not None and not self.done else 0

    def passed(self, count: int) -> None:
        """*count* of the `unread` bytes went to the client without being fed."""
        assert self._body is not None
        self._body.passed(count)
        self.done = self._body.done

    def _feed(self, data: bytes) -> tuple[bytes, bytes]:
        out: list[bytes] = []
        while data and not self.done and not self.upgraded and self._body is None:
            block = self._block.feed(data)
            if block is None:
                return b"".join(out), b""
            lines, data = block
            self._head(*parse_response(lines))
            raw = self._block.raw
            out.append(raw if self._rewrite is None else self._rewrite(lines, raw))
            if self._body is None and not self.upgraded:  # an interim response: another head follows
                self._block = _new_block()
        if self.upgraded:
            out.append(data)
            data = b""
        elif self._body is not None and not self.done:
            passed, data = self._body.feed(data)
            out.append(passed)
            self.done = self._body.done
        return b"".join(out), data

    def _head(self, version: bytes, status: int, values: dict[bytes, list[bytes]]) -> None:
        self.status = status
        lengths, codings = values.get(b"content-length", NO_VALUES), values.get(b"transfer-encoding", NO_VALUES)
        found = header_framing(lengths, codings, version)
        if status == 101:
            if not self._upgrade or version != b"HTTP/1.1":
                raise malformed("101 that nobody asked for")
            self.upgraded = True
        elif status < 200:
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise ProtocolError("limit", "too many interim responses")
        else:
            self.keep_alive = wants_keep_alive(version, values.get(b"connection", NO_VALUES))
            self._final(status, found)

    def _final(self, status: int, found: Framing | None) -> None:
        tunnel = self._method == b"CONNECT" and status < 300
        if self._method == b"HEAD" or status in BODILESS or tunnel:
            found = NO_BODY
        chosen = found or UNTIL_CLOSE
        self.close_delimited = chosen.kind == CLOSE
        self.keep_alive = self.keep_alive and not self.close_delimited
        self.length = chosen.length if chosen.kind == LENGTH else None
        self._body = BodyReader(chosen, extensions=True)
        self.done = self._body.done


def _new_block() -> LineBlock:
    return LineBlock(MAX_HEAD, MAX_HEAD, MAX_HEADERS + 1)


def parse_response(lines: list[bytes]) -> tuple[bytes, int, dict[bytes, list[bytes]]]:
    """The version, the status, and the values of the headers in READ."""
    if not lines:
        raise malformed("an empty line where a response should begin")
    version, _, rest = lines[0].partition(b" ")
    code, _, phrase = rest.partition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or len(code) != 3 or code.translate(None, DIGITS) or code < b"100":
        raise malformed("a status line that cannot be read")
    if len(phrase.translate(None, CONTROLS)) != len(phrase):
        raise malformed("a control byte in the status line")
    values: dict[bytes, list[bytes]] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        lower = LOWER_NAMES[name if colon else b""]
        if lower in READ:
            values.setdefault(lower, []).append(value.strip(b" \t"))
    whole = b"".join(lines)  # one check for all values; a name with such a byte was refused above
    if len(whole.translate(None, CONTROLS)) != len(whole):
        raise malformed("a control byte in a header value")
    return version, int(code), values


def wants_keep_alive(version: bytes, connection: list[bytes]) -> bool:
    """Whether a message with these Connection headers leaves its connection usable."""
    if not connection:
        return version == b"HTTP/1.1"
    options = connection_options(connection)
    if b"close" in options:
        return False
    return version == b"HTTP/1.1" or b"keep-alive" in options


def connection_options(values: list[bytes]) -> list[bytes]:
    """The options of a Connection header, lower case."""
    return [option for value in values for part in value.split(b",") if (option := part.strip(b" \t").lower())]
