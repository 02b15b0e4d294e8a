"""The preamble that the preload library sends first on a connection that it redirected to the proxy.

The layout is `struct ns_preamble` of interpose/src/portmap.h: 36 bytes, and no answer. Rules kept here:

1. Nothing in it is used before its token is verified. The token is the proxy's password as raw bytes instead of
   hexadecimal digits, and is compared in constant time.
2. One address has one spelling: IPv4 is family 4 and followed by zeros, also where a program wrote it within IPv6.
3. Bytes behind it belong to the program; they are held until the gate has decided on the destination.
"""

from __future__ import annotations

from _operator import _compare_digest as compare_digest
from _socket import AF_INET, AF_INET6, inet_ntop

VERSION = 1  # no letter, and no version of SOCKS
IPV4, IPV6 = 4, 6
SIZE, ADDRESS, TOKEN = 36, 4, 20  # of all; where the address and the token begin
_ZEROS, _MAPPED = bytes(12), bytes(10) + b"\xff\xff"


class PreambleReader:
    """Feed it what the client sent. Ends with `destination` set, or `failed` with a `reason` and a `detail`."""

    __slots__ = ("_buffer", "_token", "destination", "detail", "failed", "leftover", "reason")

    def __init__(self, token: bytes | None) -> None:
        self._token = token
        self._buffer = b""
        self.destination: tuple[str, int] | None = None  # address and port
        self.leftover = b""
        self.failed = False
        self.reason = ""
        self.detail = ""

    def feed(self, data: bytes) -> None:
        if self.failed:
            return
        if self.destination is not None:
            self.leftover += data
            return
        self._buffer += data
        if len(self._buffer) >= SIZE:
            self._read(self._buffer[:SIZE])
            self.leftover = b"" if self.failed else self._buffer[SIZE:]
            self._buffer = b""

    def _read(self, whole: bytes) -> None:
        if not self._token or not compare_digest(whole[TOKEN:].hex().encode("ascii"), self._token):
            return self._fail("not-allowed", "the session's token is wrong")
        version, family = whole[:2]
        if version != VERSION or family not in (IPV4, IPV6):
            return self._fail("malformed", f"no preamble of version {VERSION}, or an address of family {family}")
        address = whole[ADDRESS:TOKEN]
        if address[4:] != _ZEROS if family == IPV4 else address[:12] == _MAPPED:
            return self._fail("malformed", "an IPv4 address in another spelling than its own")
        spelt = inet_ntop(AF_INET, address[:4]) if family == IPV4 else inet_ntop(AF_INET6, address)
        self.destination = spelt, int.from_bytes(whole[2:ADDRESS], "big")
        return None

    def _fail(self, reason: str, detail: str) -> None:
        self.failed = True
        self.reason = reason
        self.detail = detail
