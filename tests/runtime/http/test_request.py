"""A request for an origin: its one Host, no header of the connection's own, and what the caller changes."""

from __future__ import annotations

import pytest

from netsandbox.runtime.http.errors import ProtocolError
from netsandbox.runtime.http.head import HeadReader, RequestHead
from netsandbox.runtime.http.request import host_header, rewrite


def head_of(*lines: bytes) -> RequestHead:
    result = HeadReader().feed(b"\r\n".join(lines) + b"\r\n\r\n")
    assert result is not None
    return result[0]


def test_the_caller_changes_and_drops_headers() -> None:
    head = head_of(b"GET /x HTTP/1.1", b"Host: a.test", b"Origin: http://a.test", b"Cookie: c", b"X: y")
    changes = {b"origin": b"http://b.test", b"cookie": None}
    request = rewrite(head, b"b.test", 80, b"/x", changes.get)
    assert request.head_bytes == b"GET /x HTTP/1.1\r\nHost: b.test\r\nOrigin: http://b.test\r\nX: y\r\n\r\n"


def test_headers_of_the_connection_and_of_a_proxy_stay_here() -> None:
    head = head_of(b"GET / HTTP/1.1", b"Host: a", b"Connection: x-hop", b"X-Hop: 1", b"TE: trailers", b"Proxy-X: 2")
    assert rewrite(head, b"a", 80, b"/").head_bytes == b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("line", [b"TRACE / HTTP/1.1", b"GET /#x HTTP/1.1", b"GET * HTTP/1.1"])
def test_what_no_origin_should_get_is_refused(line: bytes) -> None:
    head = head_of(line, b"Host: a")
    with pytest.raises(ProtocolError):
        rewrite(head, b"a", 80, head.target)


@pytest.mark.parametrize(
    ("host", "port", "value"), [(b"A.Test.", 80, b"a.test"), (b"a", 81, b"a:81"), (b"::1", 80, b"[::1]")]
)
def test_the_host_of_a_destination(host: bytes, port: int, value: bytes) -> None:
    assert host_header(host, port) == value
