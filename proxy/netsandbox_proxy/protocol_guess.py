"""What a connection is, told by its first bytes: TLS, HTTP or neither.

Rules kept here:

1. Anything shaped like a TLS record counts as TLS, so that an alert or an SSLv2 hello in front cannot turn a TLS
   connection into an opaque one (some servers skip warning alerts before the hello).
2. In doubt it is HTTP: the strict parser then refuses what a lenient server might have accepted.
3. What has been said does not change with more bytes.
"""

from __future__ import annotations

from netsandbox_proxy.clienthello import CLIENT_HELLO
from netsandbox_proxy.head import TOKEN

FIRST_LINE = 1024  # in which a text protocol that is not HTTP must have ended its first line
METHODS = frozenset(b"GET HEAD POST PUT DELETE OPTIONS TRACE PATCH CONNECT PRI PROPFIND REPORT PROXY".split())
# What some server takes for the space in a request line: those of ASCII, and those that only Unicode counts as one.
SPACES = b"\t\v\f \x1c\x1d\x1e\x1f\x85\xa0"
SIGNS = (b"HTTP/", b"://")  # a version, or a target that names its own host
HANDSHAKE = 22


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

    A word and a space also begin SMTP, IMAP, git and SSH; those are told by their first line, which names no version
    of HTTP.
    """
    if not first:
        return None
    if first[0] in b"\r\n" + SPACES:
        return True
    rest = first[:FIRST_LINE].lstrip(TOKEN)
    if not rest:
        return True if len(first) >= FIRST_LINE else None
    word = first[: min(len(first), FIRST_LINE) - len(rest)]
    if word.upper() in METHODS and rest[0] in b"\r\n":
        return True  # some servers split the line there too
    if not word or rest[0] not in SPACES:
        return False
    return True if word.upper() in METHODS else _line_is_http(first)


def _line_is_http(first: bytes) -> bool | None:
    """By the first line; a NUL ends one too, for git's sake."""
    start = first[:FIRST_LINE]
    ends = [at for at in (start.find(b"\n"), start.find(b"\0")) if at >= 0]
    line = (start[: min(ends)] if ends else start).upper()
    if any(sign in line for sign in SIGNS):
        return True
    if ends:
        return False
    return True if len(first) >= FIRST_LINE else None
