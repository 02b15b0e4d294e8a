"""A client's request as it goes to the origin.

Rules kept here:

1. The origin sees one Host: the one that the caller decided on.
2. Nothing that was meant for us, or that could steer the next hop (Proxy-*, hop-by-hop headers, x-unix-socket,
   x-netsandbox-*, upgrades other than WebSocket), goes further.
3. What frames the body is kept as it was read, and Connection cannot name it away.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.runtime.http.authority import VISIBLE
from netsandbox.runtime.http.body import NONE, Framing, framing
from netsandbox.runtime.http.errors import ProtocolError, malformed
from netsandbox.runtime.http.head import RequestHead, is_token
from netsandbox.runtime.http.response import connection_options, wants_keep_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Change = Callable[[bytes, bytes], bytes | None]  # name in lower case and value -> the value to send; None: drop it

HTTP_PORT = 80
NO_OPTIONS: frozenset[bytes] = frozenset()
DROPPED = frozenset({b"host", b"connection", b"keep-alive", b"te", b"upgrade", b"http2-settings", b"x-unix-socket"})
DROPPED_PREFIXES = (b"proxy-", b"x-netsandbox-")
ECHOING = (b"TRACE", b"TRACK")  # the response would repeat headers that a program must not see
NOT_HOP_BY_HOP = frozenset({b"host", b"content-length", b"transfer-encoding"})


@frozen
class ForwardRequest:
    """A request as it goes to the origin."""

    authority_host: bytes  # as spelled, for the gate
    port: int
    head_bytes: bytes
    method: bytes
    framing: Framing
    upgrade: bool  # a WebSocket handshake: only then may the origin respond with 101
    keep_alive: bool  # the client means to send another request


def keep_value(name: bytes, value: bytes) -> bytes | None:
    return value


def rewrite(
    head: RequestHead,
    host: bytes,
    port: int,
    path: bytes,
    change: Change = keep_value,
    extra: Iterable[bytes] = (),
) -> ForwardRequest:
    """The request for the origin *host*:*port*; *change* gets each header that is passed on, *extra* lines follow."""
    if head.method.upper() in ECHOING:
        raise ProtocolError("unsupported", "TRACE and TRACK are not forwarded", 405)
    body = framing(head)
    options = _hop_by_hop(head)
    upgrade = _is_websocket(head, options, body)
    keep_alive = wants_keep_alive(head.version, [*head.get_all(b"connection"), *head.get_all(b"proxy-connection")])
    lines = [b"%s %s %s" % (head.method, _origin_form(head.method, path), head.version)]
    lines.append(b"Host: " + host_header(host, port))
    lines += [
        b"%s: %s" % (name, changed)
        for lower, (name, value) in zip(head.lower_names, head.headers, strict=True)
        if lower not in DROPPED and lower not in options and not lower.startswith(DROPPED_PREFIXES)
        if (changed := change(lower, value)) is not None
    ]
    lines += extra
    if upgrade:
        lines += [b"Connection: Upgrade", b"Upgrade: websocket"]
    elif not keep_alive:
        lines.append(b"Connection: close")
    elif head.version == b"HTTP/1.0":
        lines.append(b"Connection: keep-alive")
    raw = b"\r\n".join(lines) + b"\r\n\r\n"
    return ForwardRequest(host, port, raw, head.method, body, upgrade, keep_alive)


def host_header(host: bytes, port: int) -> bytes:
    """The Host value for a decided destination: lower case, no trailing dot, no default port."""
    name = host.lower()
    if b":" in name:
        name = b"[%s]" % name.strip(b"[]")
    elif name.endswith(b"."):
        name = name[:-1]
    return name if port == HTTP_PORT else b"%s:%d" % (name, port)


def _origin_form(method: bytes, path: bytes) -> bytes:
    if b"#" in path or path.translate(None, VISIBLE):
        raise malformed("a fragment in the request target")
    if path == b"*" and method != b"OPTIONS":
        raise malformed("`*` is for OPTIONS alone")
    if not path:
        return b"*" if method == b"OPTIONS" else b"/"
    return b"/" + path if path.startswith(b"?") else path


def _hop_by_hop(head: RequestHead) -> frozenset[bytes]:
    if not head.get_all(b"connection"):
        return NO_OPTIONS
    options = frozenset(connection_options(head.get_all(b"connection")))
    if not all(is_token(option) for option in options):
        raise malformed("a Connection header that cannot be read")
    if options & NOT_HOP_BY_HOP:
        raise malformed("a Connection header that names what frames or routes the message")
    return options


def _is_websocket(head: RequestHead, options: frozenset[bytes], body: Framing) -> bool:
    if not options:
        return False
    upgrades = [value.lower() for value in head.get_all(b"upgrade")]
    plain = head.method == b"GET" and head.version == b"HTTP/1.1" and body.kind == NONE
    return plain and upgrades == [b"websocket"] and b"upgrade" in options
