"""The server's side of a SOCKS5 handshake (RFC 1928, RFC 1929).

Rules kept here:

1. Only CONNECT. BIND and UDP ASSOCIATE get 0x07 and no socket is ever made for them.
2. With a token, no method but username/password is taken, and the token is compared in constant time.
3. The name goes to the gate as it came; bytes behind the request are kept back until we have answered it.
"""

from __future__ import annotations

from _operator import _compare_digest as compare_digest
from _socket import AF_INET6, inet_ntop

VERSION = 5
AUTH_VERSION = 1
NO_AUTH, PASSWORD, NO_METHOD = 0x00, 0x02, 0xFF
CONNECT = 1
IPV4, DOMAIN, IPV6 = 1, 3, 4
SUCCEEDED, FAILED, NOT_ALLOWED, HOST_UNREACHABLE, REFUSED = 0x00, 0x01, 0x02, 0x04, 0x05
BAD_COMMAND, BAD_ADDRESS_TYPE = 0x07, 0x08

CODES = {
    "malformed": FAILED,
    "limit": FAILED,
    "internal": FAILED,
    "audit-unwritable": FAILED,
    "unsupported": BAD_COMMAND,
    "lookup-failed": HOST_UNREACHABLE,
    "deadline": HOST_UNREACHABLE,
    "unreachable": REFUSED,
}


def reply(code: int) -> bytes:
    """A reply without an address: the command does not learn ours."""
    return bytes((VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0))


def code_for(reason: str) -> int:
    """The reply code for a reason; every other reason is one of policy."""
    return CODES.get(reason, NOT_ALLOWED)


class Socks5Reader:
    """Feed it what the client sent; send what it returns. Ends with `request` set, or `failed` and a `reason`."""

    __slots__ = ("_buffer", "_step", "_token", "failed", "leftover", "reason", "request")

    def __init__(self, token: bytes | None) -> None:
        self._token = token
        self._buffer = b""
        self._step = self._greeting
        self.request: tuple[bytes, int] | None = None
        self.leftover = b""
        self.failed = False
        self.reason = ""

    def feed(self, data: bytes) -> list[bytes]:
        """The replies to send now, in order; after `failed` close once they are sent."""
        if self.failed:
            return []
        if self.request is not None:
            self.leftover += data
            return []
        self._buffer += data
        replies: list[bytes] = []
        while not self.failed and self.request is None:
            before = self._step
            answer = self._step()
            if answer:
                replies.append(answer)
            if self._step == before:
                break
        return replies

    def _greeting(self) -> bytes:
        buffer = self._buffer
        if buffer[:1] and buffer[0] != VERSION:
            return self._fail(b"", "malformed")
        if len(buffer) < 2:
            return b""
        if buffer[1] == 0:
            return self._fail(b"", "malformed")
        end = 2 + buffer[1]
        if len(buffer) < end:
            return b""
        wanted = NO_AUTH if self._token is None else PASSWORD
        if wanted not in buffer[2:end]:
            return self._fail(bytes((VERSION, NO_METHOD)), "not-allowed")
        self._buffer = buffer[end:]
        self._step = self._request if self._token is None else self._password
        return bytes((VERSION, wanted))

    def _password(self) -> bytes:
        buffer = self._buffer
        if buffer[:1] and buffer[0] != AUTH_VERSION:
            return self._fail(bytes((AUTH_VERSION, 1)), "malformed")
        if len(buffer) < 2 or len(buffer) < 3 + buffer[1]:
            return b""
        start = 3 + buffer[1]
        end = start + buffer[start - 1]
        if len(buffer) < end:
            return b""
        if not self._token or not compare_digest(buffer[start:end], self._token):
            return self._fail(bytes((AUTH_VERSION, 1)), "not-allowed")
        self._buffer = buffer[end:]
        self._step = self._request
        return bytes((AUTH_VERSION, 0))

    def _request(self) -> bytes:
        buffer = self._buffer
        if len(buffer) < 4:
            return b""
        version, command, reserved, kind = buffer[:4]
        if version != VERSION or reserved != 0:
            return self._fail(reply(FAILED), "malformed")
        if command != CONNECT:
            return self._fail(reply(BAD_COMMAND), "unsupported")
        if kind not in (IPV4, DOMAIN, IPV6):
            return self._fail(reply(BAD_ADDRESS_TYPE), "unsupported")
        return self._address(kind)

    def _address(self, kind: int) -> bytes:
        buffer = self._buffer
        start, size = 4, 4 if kind == IPV4 else 16
        if kind == DOMAIN:
            if len(buffer) < 5:
                return b""
            start, size = 5, buffer[4]
            if size == 0:
                return self._fail(reply(FAILED), "malformed")
        end = start + size
        if len(buffer) < end + 2:
            return b""
        self.request = (_spell(kind, buffer[start:end]), int.from_bytes(buffer[end : end + 2], "big"))
        self.leftover = buffer[end + 2 :]
        self._buffer = b""
        return b""

    def _fail(self, answer: bytes, reason: str) -> bytes:
        self.failed = True
        self.reason = reason
        self._buffer = b""
        return answer


def _spell(kind: int, raw: bytes) -> bytes:
    """Addresses spelled as in an authority, so that every door shows the gate the same bytes (INV-3)."""
    if kind == IPV4:
        return b"%d.%d.%d.%d" % tuple(raw)
    if kind == IPV6:
        return b"[%s]" % inet_ntop(AF_INET6, raw).encode("ascii")
    return raw
