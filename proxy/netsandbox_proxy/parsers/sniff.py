"""Checks the first bytes of a client: their protocol, and whether they name the decided host.

Rules kept here:

1. No byte of the client passes before there is a verdict; the caller holds them, see `held`.
2. For a named grant TLS must carry that name as its SNI, and a hello that cannot be parsed is denied (INV-1). Encrypted
   ClientHello uses the same extension as the GREASE that browsers send: with the decided name outside it is let
   through, with any other name, or none, it is denied.
3. Anything shaped like a TLS record counts as TLS, so that an alert or an SSLv2 hello in front cannot turn a TLS
   connection into an opaque one (some servers skip warning alerts before the hello).
4. In doubt it is HTTP: the strict parser then refuses what a lenient server might have accepted.
5. A verdict does not change with more bytes.
"""

from __future__ import annotations

from netsandbox.runtime.http.clienthello import CLIENT_HELLO, HANDSHAKE, ClientHelloReader
from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.head import TOKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.clienthello import ClientHello

# What the first bytes can be; any other verdict is the reason of a denial.
TLS = "tls"
HTTP = "http"
OPAQUE = "opaque"
PASSING = (TLS, HTTP, OPAQUE)

MAX_FIRST_LINE = 1024  # in which a text protocol that is not HTTP must have ended its first line
METHODS = frozenset(b"GET HEAD POST PUT DELETE OPTIONS TRACE TRACK PATCH CONNECT PRI PROPFIND REPORT PROXY".split())
# What some server takes for the space in a request line: those of ASCII, and those that only Unicode counts as one.
SPACES = b"\t\v\f \x1c\x1d\x1e\x1f\x85\xa0"
LINE_ENDS = b"\r\n"
WORD = bytes(byte for byte in range(0x21, 0x100) if byte != 0x7F and byte not in SPACES)  # some server takes any method
VERSION = b"HTTP/"
URL = b"://"  # in a target that names its own host
XMPP = (b"<?xml ", b"<stream:stream ")
GIT_SERVICES = (b"git-upload-pack", b"git-receive-pack", b"git-upload-archive")
HEX = b"0123456789abcdefABCDEF"


class Sniffer:
    """Feed it what the client sends (b"" for the end of the stream) until it returns a verdict."""

    __slots__ = ("_host", "_reader", "held")

    def __init__(self, host: str) -> None:
        self._host = host
        self._reader: ClientHelloReader | None = None
        self.held = b""

    def feed(self, data: bytes) -> str | None:
        if not data:
            return self._cut_short()
        self.held += data
        if self._reader is not None:
            return self._read_hello(data)
        tls = looks_like_tls(self.held)
        if tls is None:
            return None
        if tls:
            self._reader = ClientHelloReader()
            return self._read_hello(self.held)
        http = looks_like_http(self.held)
        if http is None:
            return None
        return HTTP if http else OPAQUE

    def _read_hello(self, data: bytes) -> str | None:
        assert self._reader is not None
        try:
            hello = self._reader.feed(data)
        except ProtocolError as error:
            return error.reason
        return None if hello is None else check_hello(hello, self._host)

    def _cut_short(self) -> str:
        if not self.held:
            return OPAQUE
        return "malformed" if self._reader is None else "tls-unreadable"


def check_hello(hello: ClientHello, host: str) -> str:
    """`tls` if the outer name is the decided one, otherwise the reason of the denial."""
    sni = hello.sni
    if sni is not None and sni.lower() == host.lower().encode("ascii"):
        return TLS
    if hello.ech:
        return "ech"
    return "sni-missing" if sni is None else "sni-mismatch"


def looks_like_tls(first: bytes) -> bool | None:
    """Whether a connection that begins so is TLS of any age; None: too early to say."""
    if not first:
        return None
    if first[0] == HANDSHAKE:
        return True  # whatever version comes behind it: what cannot be read is then refused
    if 20 <= first[0] <= 24:
        return None if len(first) < 2 else first[1] == 3
    if not first[0] & 0x80:
        return False
    # SSLv2: two bytes of length with the top bit set, message type 1, then a version of 0x0002 or 0x03xx.
    if len(first) >= 3 and first[2] != CLIENT_HELLO:
        return False
    return None if len(first) < 4 else first[3] in (0, 3)


def looks_like_http(first: bytes) -> bool | None:
    """Whether a connection that begins so may be an HTTP/1 request, however odd; None: too early to say.

    A word and a space also begin SMTP, IMAP, git and SSH; those are recognised by their first line, which has no
    version of HTTP. A control byte in the word means a binary protocol.
    """
    if not first:
        return None
    if first[0] in LINE_ENDS + SPACES:
        return True
    if first.startswith(XMPP):
        return False
    start = first[:MAX_FIRST_LINE]
    rest = start.lstrip(WORD)
    word = start[: len(start) - len(rest)]
    if rest and word.upper() in METHODS and rest[0] in LINE_ENDS + SPACES:
        return True  # some servers split the line at CR and LF too
    if rest in (b"", b"\r"):
        return True if len(first) >= MAX_FIRST_LINE else None
    if not word or rest[0] not in b"\r" + SPACES or rest.startswith(b"\r\n"):
        return False
    return _line_is_http(start, word, rest[0])


def _line_is_http(start: bytes, word: bytes, space: int) -> bool | None:
    """By the first line. A NUL ends it too if it cannot be text: for git, and for binary messages that begin so."""
    ends = [start.find(b"\n")]
    if space not in b" \t\r" or is_git(word):
        ends.append(start.find(b"\0"))
    ends = [at for at in ends if at >= 0]
    line = (start[: min(ends)] if ends else start).upper()
    if VERSION in line or (URL in line and not word.translate(None, TOKEN)):
        return True
    if ends:
        return False
    return True if len(start) >= MAX_FIRST_LINE else None


def is_git(word: bytes) -> bool:
    """Whether a message of git begins so: its length in hexadecimal, and a service."""
    return word[4:] in GIT_SERVICES and not word[:4].translate(None, HEX)
