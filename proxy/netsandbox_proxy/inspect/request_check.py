"""Checks of a request's head that come before any rule (pure): it names the decided host, and no byte in it could end
a line or begin another request.

mitmproxy compares none of this in transparent mode, and HTTP/2 can carry bytes that HTTP/1 cannot.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_METHOD = 64
MAX_TARGET = 16 * 1024
MAX_HEAD = 256 * 1024
# Headers by which a server may take another method or path than those of the request line.
REPLACING = frozenset(
    (
        *(b"x-http-method-override", b"x-http-method", b"x-method-override", b"x-original-method"),
        *(b"x-original-url", b"x-original-uri", b"x-rewrite-url", b"x-forwarded-uri", b"x-forwarded-path"),
        *(b"x-forwarded-prefix", b"x-forwarded-method"),
    )
)
BODILESS = (b"GET", b"HEAD")  # a server may ignore their body, and take it for the next request (RFC 9110, 9.3.1)
_NAME = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_BREAKING = frozenset((*range(0x09), *range(0x0A, 0x20), 0x7F))  # RFC 9110, 5.5
_PRINTED = frozenset(range(0x21, 0x7F))


class Refused(Exception):
    """A request that goes nowhere, with the status to answer and a reason of the closed list."""

    def __init__(self, status: int, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.detail = detail


def check_head(method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """`Refused` unless every part is what HTTP/1 could carry."""
    if len(target) > MAX_TARGET:
        raise Refused(414, "malformed", "the request target is too long")
    if not 1 <= len(method) <= MAX_METHOD or not _NAME.issuperset(method):
        raise Refused(400, "malformed", "this is not a method")
    if not target or not _PRINTED.issuperset(target):
        raise Refused(400, "malformed", "the request target has bytes that no target has")
    if not target.startswith(b"/") and target != b"*":  # HTTP/2 could carry the absolute form of another host
        raise Refused(400, "malformed", "the request target is no path")
    size = 0
    for name, value in headers:
        size += len(name) + len(value) + 4
        if not name or not _NAME.issuperset(name) or not _BREAKING.isdisjoint(value):
            raise Refused(400, "malformed", "a header has bytes that no header has")
    if size > MAX_HEAD:
        raise Refused(431, "malformed", "the head of the request is too long")


def check_authority(host: str, port: int, authorities: Iterable[bytes]) -> None:
    """`Refused` unless every one of the *authorities*, and at least one, is *host* at *port*."""
    wanted = host.encode("ascii")
    named = False
    for authority in authorities:
        name, colon, digits = authority.partition(b":")
        if (
            name.lower().removesuffix(b".") != wanted
            or (colon and digits != b"%d" % port)
            or (not colon and port != 443)
        ):
            raise Refused(421, "host-mismatch", "the request names another host than its connection")
        named = True
    if not named:
        raise Refused(400, "malformed", "the request names no host")


def is_unclear(method: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether servers could read another request in this one: a header replaces a part of the request line, or there is
    a body where none belongs. To a server that passes headers on as variables (RFC 3875, 4.1.18) an underscore is a
    hyphen."""
    bodiless = method.upper() in BODILESS
    for name, value in headers:
        plain = name.lower().replace(b"_", b"-")
        if plain in REPLACING or (bodiless and has_body(plain, value)):
            return True
    return False


def has_body(name: bytes, value: bytes) -> bool:
    """Whether the header *name*, in lower case, announces a body."""
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip().strip(b"0") != b"")
