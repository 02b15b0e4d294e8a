"""A client's request, rewritten for the origin.

Rules kept here:

1. The origin sees one authority: the one that was decided on (INV-2, INV-3). A request that names two is refused.
2. Nothing that was meant for us, or that could steer the next hop (Proxy-*, hop-by-hop headers, x-unix-socket,
   x-netsandbox-*, upgrades other than WebSocket), goes further.
3. What frames the body is kept as it was read, and Connection cannot name it away.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox_proxy.parsers.authority import VISIBLE, fold_host, split_authority, split_url
from netsandbox_proxy.parsers.body import NONE, Framing, framing
from netsandbox_proxy.parsers.errors import ProtocolError, malformed
from netsandbox_proxy.parsers.head import RequestHead, is_token
from netsandbox_proxy.parsers.response import connection_options, wants_keep_alive

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


def forward_request(head: RequestHead) -> ForwardRequest:
    """An absolute-form request to the proxy port."""
    if head.method == b"CONNECT":
        raise malformed("CONNECT is not forwarded")
    _, authority, path = split_url(head.target)
    host, port = split_authority(authority, HTTP_PORT)
    if head.host is not None and not _agrees(head.host, host, port, HTTP_PORT):
        raise _mismatch("the Host header is not the URL's authority")
    return _rewrite(head, host, port, path)


def pinned_request(head: RequestHead, host: bytes, port: int) -> ForwardRequest:
    """A request on a connection whose destination has been decided: it may name that destination and no other."""
    if head.method == b"CONNECT":
        raise ProtocolError("unsupported", "CONNECT on a connection that already has its destination")
    path = head.target
    if not path.startswith(b"/") and path != b"*":
        _, authority, path = split_url(path)
        if not _agrees(authority, host, port, HTTP_PORT):
            raise _mismatch("the URL's authority is not the destination of this connection")
    if head.host is not None and not _agrees(head.host, host, port, port):
        raise _mismatch("the Host header is not the destination of this connection")
    return _rewrite(head, host, port, path)


def connect_request(head: RequestHead) -> tuple[bytes, int]:
    """Host and port of a CONNECT; the decision is on the authority, and a Host header may only repeat it."""
    if head.method != b"CONNECT":
        raise malformed("not a CONNECT request")
    host, port = split_authority(head.target, None)
    if head.host is not None and not _agrees(head.host, host, port, port):
        raise ProtocolError("host-mismatch", "the Host header is not the authority of CONNECT")
    if framing(head).kind != NONE:
        raise malformed("CONNECT with a body")
    return host, port


def _agrees(authority: bytes, host: bytes, port: int, default_port: int) -> bool:
    other, other_port = split_authority(authority, default_port)
    return other_port == port and fold_host(other) == fold_host(host)


def _mismatch(detail: str) -> ProtocolError:
    return ProtocolError("host-mismatch", detail, 421)


def _rewrite(head: RequestHead, host: bytes, port: int, path: bytes) -> ForwardRequest:
    if head.method.upper() in ECHOING:
        raise ProtocolError("unsupported", "TRACE and TRACK are not forwarded", 405)
    body = framing(head)
    options = _hop_by_hop(head)
    upgrade = _is_websocket(head, options, body)
    keep_alive = wants_keep_alive(head.version, [*head.get_all(b"connection"), *head.get_all(b"proxy-connection")])
    lines = [b"%s %s %s" % (head.method, _origin_form(head.method, path), head.version)]
    lines.append(b"Host: " + host_header(host, port))
    lines += [
        b"%s: %s" % header
        for name, header in zip(head.lower_names, head.headers, strict=True)
        if name not in DROPPED and name not in options and not name.startswith(DROPPED_PREFIXES)
    ]
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
