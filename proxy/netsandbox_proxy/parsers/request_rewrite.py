"""The destination of a client's request: the URL's, the one that was decided for its connection, or that of CONNECT.

The origin sees one authority: the one that was decided on (INV-2, INV-3). A request that names two is refused.
"""

from __future__ import annotations

from netsandbox.runtime.http.authority import fold_host, split_authority, split_url
from netsandbox.runtime.http.body import NONE, framing
from netsandbox.runtime.http.errors import ProtocolError, malformed
from netsandbox.runtime.http.request import HTTP_PORT, ForwardRequest, rewrite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.runtime.http.head import RequestHead


def forward_request(head: RequestHead) -> ForwardRequest:
    """An absolute-form request to the proxy port."""
    if head.method == b"CONNECT":
        raise malformed("CONNECT is not forwarded")
    _, authority, path = split_url(head.target)
    host, port = split_authority(authority, HTTP_PORT)
    if head.host is not None and not _agrees(head.host, host, port, HTTP_PORT):
        raise _mismatch("the Host header is not the URL's authority")
    return rewrite(head, host, port, path)


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
    return rewrite(head, host, port, path)


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
