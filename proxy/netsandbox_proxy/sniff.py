"""The client's first flight, judged against the name that was decided on. Bytes in, one word out; no sockets.

Rules: nothing the client sent passes before there is a word (the caller holds it, see `held`); for a named grant TLS
must carry that name as its SNI, and what cannot be read is denied (INV-1). Encrypted ClientHello uses the same
extension as the GREASE that browsers send, so with the decided name outside it is let through; with any other name, or
none, it is denied.
"""

from __future__ import annotations

from netsandbox_proxy.clienthello import ClientHelloReader
from netsandbox_proxy.errors import ProtocolError
from netsandbox_proxy.protocol_guess import looks_like_http, looks_like_tls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.clienthello import ClientHello

# What a flight can be; any other word is the reason of a denial.
TLS = "tls"
HTTP = "http"
OPAQUE = "opaque"
PASSING = (TLS, HTTP, OPAQUE)


class FirstFlight:
    """Feed it what the client sends (b"" for the end of the stream) until it says a word."""

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
        return None if hello is None else judge_hello(hello, self._host)

    def _cut_short(self) -> str:
        if not self.held:
            return OPAQUE
        return "malformed" if self._reader is None else "tls-unreadable"


def judge_hello(hello: ClientHello, host: str) -> str:
    """`tls` when the outer name is the decided one, otherwise why not."""
    sni = hello.sni
    if sni is not None and sni.lower() == host.lower().encode("ascii"):
        return TLS
    if hello.ech:
        return "ech"
    return "sni-missing" if sni is None else "sni-mismatch"
