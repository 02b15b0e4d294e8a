"""Finds the name that a connection asks for in its first bytes: an HTTP request head or a TLS ClientHello. No sockets.

Rules:
1. The first bytes are parsed completely or refused, as every other door parses them (`runtime.http`).
2. MAX_HEAD bounds memory and time for every split of the bytes.
3. Only names that no other site can have (`NAME.localhost`, RFC 6761) are routed, so a page whose name was rebound to
   127.0.0.1 reaches nothing.
"""

from __future__ import annotations

from netsandbox.runtime.http.authority import split_authority
from netsandbox.runtime.http.clienthello import HANDSHAKE, ClientHelloReader
from netsandbox.runtime.http.errors import ProtocolError, malformed
from netsandbox.runtime.http.head import TOKEN, HeadReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.head import RequestHead

MAX_LINE = 16 * 1024
MAX_HEAD = 32 * 1024
DOMAIN = "localhost"
HTTP_PORT = 80


class Opening:
    """The first bytes of a connection, understood. `head` is None for TLS; `rest` is what followed the head."""

    __slots__ = ("head", "host", "rest")

    def __init__(self, host: str, head: RequestHead | None = None, rest: bytes = b"") -> None:
        self.host = host  # in lower case, without port and trailing dot; empty if TLS names none
        self.head = head
        self.rest = rest


class OpeningReader:
    """Call `feed` until it returns the opening. `held` has every byte so far."""

    __slots__ = ("_head", "_hello", "held")

    def __init__(self) -> None:
        self.held = b""
        self._head: HeadReader | None = None
        self._hello: ClientHelloReader | None = None

    @property
    def is_tls(self) -> bool:
        return self._hello is not None

    def feed(self, data: bytes) -> Opening | None:
        """None: more bytes are needed."""
        if not data:
            return None
        if not self.held:
            self._begin(data[0])
        self.held += data
        if self._hello is not None:
            return self._read_hello(self._hello, data)
        assert self._head is not None
        found = self._head.feed(data)
        return None if found is None else _conclude(*found)

    def _begin(self, first: int) -> None:
        if first == HANDSHAKE:
            self._hello = ClientHelloReader(MAX_HEAD)
        elif first in TOKEN:
            self._head = HeadReader(MAX_LINE, MAX_HEAD)
        else:
            raise malformed("this is a door for HTTP/1.1 and TLS")

    @staticmethod
    def _read_hello(reader: ClientHelloReader, data: bytes) -> Opening | None:
        hello = reader.feed(data)
        return None if hello is None else Opening((hello.sni or b"").decode("ascii").lower())


def _conclude(head: RequestHead, rest: bytes) -> Opening:
    if head.host is None:
        raise malformed("no Host header")
    check_target(head)
    host, _ = split_authority(head.host, HTTP_PORT)
    return Opening(host.decode("ascii").lower().removesuffix("."), head, rest)


def check_target(head: RequestHead) -> None:
    """Refuse a target with a host, which a server would take before the Host header."""
    if head.target != b"*" and not head.target.startswith(b"/"):
        raise malformed("a request target that is not a path")


def split_name(host: str) -> tuple[str, int | None] | None:
    """("shop", None) for `shop.localhost`, ("shop", 5173) for `5173.shop.localhost`, ("", None) for `localhost` itself;
    None for the host of another site."""
    if host == DOMAIN:
        return "", None
    rest = host.removesuffix(f".{DOMAIN}")
    if rest == host:
        return None
    label, dot, name = rest.rpartition(".")
    if not dot:
        return name, None
    port = parse_label(label)
    return ("", None) if port is None else (name, port)  # no session is called ""


def parse_label(label: str) -> int | None:
    """The port before a name, spelled in the one way that URLs of ours have; None if it is no port."""
    if not (label.isascii() and label.isdigit()) or label[0] == "0" or len(label) > 5 or int(label) > 65535:
        return None
    return int(label)


def explain(error: ProtocolError) -> str:
    """The sentence for the client."""
    return f"The request cannot be read: {error.detail}."
