"""What the worker tells about a request for a HAR file: both heads and the beginnings of both bodies, in bounds.

Sent as messages of their own (`head`, `body`), and only if the session writes such a file. The supervisor checks them
like all others, and takes credentials out.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from netsandbox.text import printable
from netsandbox_proxy.inspect.channel import ChannelError, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from netsandbox_proxy.inspect.channel import Message

    Pass = Callable[[bytes], bytes]
    Headers = list[tuple[str, str]]

MAX_HEADERS = 200
MAX_NAME = 200
MAX_VALUE = 8 * 1024
MAX_HEAD = 48 * 1024  # characters; the packet has room for twice as many, since some are escaped
MAX_PART = 64 * 1024  # bytes of a body in one message
SIDES = ("up", "down")


def head_message(message: Any, side: str) -> Message:
    """*message* is mitmproxy's request or response."""
    return {
        "kind": "head",
        "side": side,
        "version": printable(message.http_version, MAX_NAME),
        "headers": shown_headers(message.headers.fields),
    }


def shown_headers(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """As many of them as the bounds let through, escaped."""
    made: Headers = []
    size = 0
    for name, value in fields:
        pair = _shown(name)[:MAX_NAME], _shown(value)[:MAX_VALUE]
        size += len(pair[0]) + len(pair[1])
        if size > MAX_HEAD or len(made) == MAX_HEADERS:
            break
        made.append(pair)
    return made


def _shown(raw: bytes) -> str:
    return printable(raw.decode("utf-8", "backslashreplace"))


class Copying:
    """Passes the parts of a body on, and tells the first *room* bytes of what the client sent or got: *inner* may put
    a secret into a request, or take one out of a response."""

    def __init__(self, inner: Pass, side: str, room: int, tell: Callable[[Message], None]) -> None:
        self._inner = inner
        self._side = side
        self._room = room
        self._tell = tell

    def __call__(self, data: bytes) -> bytes:
        if self._side == "up":
            self._copy(data)
        passed = self._inner(data)
        if self._side == "down":
            self._copy(passed)
        return passed

    def _copy(self, data: bytes) -> None:
        part = data[: self._room]
        self._room -= len(part)
        for at in range(0, len(part), MAX_PART):
            piece = b2a_base64(part[at : at + MAX_PART], newline=False)
            self._tell({"kind": "body", "side": self._side, "data": piece.decode("ascii")})


# In the supervisor


def read_side(message: Message) -> str:
    side = text(message, "side")
    if side not in SIDES:
        raise ChannelError("an unknown side")
    return side


def read_head(message: Message) -> tuple[str, Headers]:
    """The version and the headers of a `head`; ChannelError unless every one of them is in bounds."""
    version, found = text(message, "version"), message.get("headers")
    if len(version) > MAX_NAME + 3 or type(found) is not list or len(found) > MAX_HEADERS:
        raise ChannelError("a head out of bounds")
    headers: Headers = []
    size = 0
    for pair in found:
        if type(pair) is not list or len(pair) != 2:
            raise ChannelError("a header is no pair")
        name, value = text({"name": pair[0]}, "name"), text({"value": pair[1]}, "value")
        size += len(name) + len(value)
        headers.append((name, value))
    if size > MAX_HEAD:
        raise ChannelError("a head out of bounds")
    return version, headers


def read_body(message: Message) -> bytes:
    try:
        data = a2b_base64(text(message, "data", 2 * MAX_PART), strict_mode=True)
    except ValueError:
        raise ChannelError("a body is no base64") from None
    if len(data) > MAX_PART:
        raise ChannelError("a part of a body out of bounds")
    return data
