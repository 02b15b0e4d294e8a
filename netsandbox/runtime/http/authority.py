"""Host and port, taken apart once (INV-2).

Rules kept here:

1. The host comes out exactly as spelled; nothing is decoded, so no later stage can see another name than this one.
2. Whatever two URL parsers could read differently (userinfo, backslash, unbracketed IPv6, empty host, a port that is
   not plain decimal, any byte that is not visible ASCII) is an error, never a guess.
"""

from __future__ import annotations

from _socket import AF_INET6, inet_pton

from netsandbox.runtime.http.errors import ProtocolError, malformed

ALPHA = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = b"0123456789"
VISIBLE = bytes(range(0x21, 0x7F))
# What a registered name may be spelled with, without "," and ";" which other parsers take for separators.
NAME_BYTES = ALPHA + DIGITS + b"-._~%!$&'()*+="
IPV6_BYTES = DIGITS + b"abcdefABCDEF:."
MAX_PORT = 65535
MAX_HOST = 1024  # far over any name, so that the gate still gets to record the over-long ones


def split_authority(raw: bytes, default_port: int | None) -> tuple[bytes, int]:
    """`host`, `host:port` or `[v6]:port`; without a default the port must be there."""
    if raw.translate(None, VISIBLE):
        raise malformed("a byte in the authority that is not visible ASCII")
    if b"@" in raw:
        raise malformed("userinfo in the authority")
    host, port = _split_bracketed(raw) if raw.startswith(b"[") else _split_plain(raw)
    if len(host) > MAX_HOST:
        raise malformed("host too long")
    if port is not None:
        return host, parse_port(port)
    if default_port is None:
        raise malformed("authority without a port")
    return host, default_port


def _split_bracketed(raw: bytes) -> tuple[bytes, bytes | None]:
    end = raw.find(b"]")
    inner, rest = raw[1:end], raw[end + 1 :]
    if end < 0 or b":" not in inner or inner.translate(None, IPV6_BYTES):
        raise malformed("an IPv6 literal that cannot be read")
    if not rest:
        return raw[: end + 1], None
    if not rest.startswith(b":"):
        raise malformed("bytes after the IPv6 literal")
    return raw[: end + 1], rest[1:]


def _split_plain(raw: bytes) -> tuple[bytes, bytes | None]:
    host, colon, port = raw.partition(b":")
    if b":" in port:
        raise malformed("more than one colon: an IPv6 literal needs brackets")
    if not host:
        raise malformed("empty host")
    if host.translate(None, NAME_BYTES):
        raise malformed("a byte that no host name has")
    return host, port if colon else None


def parse_port(raw: bytes) -> int:
    """1..65535 in plain decimal: no sign, no space, no leading zero."""
    if not raw or len(raw) > 5 or raw.translate(None, DIGITS) or raw.startswith(b"0") or int(raw) > MAX_PORT:
        raise malformed("a port that is not a decimal number from 1 to 65535")
    return int(raw)


def split_url(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Scheme, authority and path with query of an absolute `http://` URL; the path is empty when the URL has none."""
    if raw.translate(None, VISIBLE):
        raise malformed("a byte in the URL that is not visible ASCII")
    if b"#" in raw or b"\\" in raw:
        raise malformed("a fragment or a backslash in the URL")
    scheme, colon, rest = raw.partition(b":")
    if not colon or not is_scheme(scheme):
        raise malformed("not an absolute URL")
    if scheme.lower() != b"http":
        raise ProtocolError("unsupported", "only http:// is forwarded; use CONNECT for the rest")
    if not rest.startswith(b"//"):
        raise malformed("http: without //")
    end = _authority_end(rest)
    if end == 2:
        raise malformed("empty host")
    return scheme, rest[2:end], rest[end:]


def is_scheme(raw: bytes) -> bool:
    return raw[:1].isalpha() and not raw.translate(None, ALPHA + DIGITS + b"+-.")


def _authority_end(rest: bytes) -> int:
    ends = [at for at in (rest.find(b"/", 2), rest.find(b"?", 2)) if at >= 0]
    return min(ends, default=len(rest))


def fold_host(host: bytes) -> bytes:
    """The form in which two spellings of one host compare equal: lower case, one trailing dot and IPv6 style aside."""
    if host.startswith(b"[") or b":" in host:
        try:
            return inet_pton(AF_INET6, host.strip(b"[]").decode("ascii")).hex(":").encode()
        except (OSError, ValueError):
            return host
    folded = host.lower()
    return folded[:-1] if folded.endswith(b".") else folded
