"""Heads of requests and responses as they pass: what is checked, and what is taken out of them."""

from __future__ import annotations

from typing import Any

from mitmproxy.net.http.http1 import expected_http_body_size

from netsandbox_proxy.inspect.request_check import Refused, check_authority, check_head

MAX_TEXT = 300
OURS = ("proxy-", "x-netsandbox-")  # headers that are meant for us
BREAKING = b"\r\n\0"
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0")


def check_request(request: Any, host: str, port: int) -> None:
    """`Refused` unless the request is for *host*. Takes out what must not go on, and the authority of HTTP/1, which
    would make an absolute form of it."""
    fields = request.headers.fields
    check_head(request.data.method, request.data.path, fields)
    if request.data.http_version not in VERSIONS:
        raise Refused(400, "malformed", "the version of HTTP is none that is passed on")
    if request.headers.get("transfer-encoding", "chunked").lower() != "chunked":
        raise Refused(400, "malformed", "the body has an encoding that not every server knows")
    authorities = [value for name, value in fields if name.lower() == b"host"]
    if len(authorities) > 1 or not (authorities or request.is_http2):
        raise Refused(400, "malformed", "the request has no Host, or more than one")
    if request.data.authority:
        authorities.append(request.data.authority)
    check_authority(host, port, authorities)
    try:
        expected_http_body_size(request)
    except ValueError as error:
        raise Refused(400, "malformed", f"the body: {error}") from None
    request.data.authority = (request.data.authority or authorities[0]) if request.is_http2 else b""
    upgrade = request.headers.get("upgrade", "").lower()
    if upgrade and (upgrade != "websocket" or request.method != "GET" or not request.is_http11):
        del request.headers["upgrade"]
    for name in [name for name in request.headers if name.lower().startswith(OURS)]:
        del request.headers[name]


def check_response(flow: Any) -> None:
    """`Refused` for a response that would be another one to the client, or that switches protocols unasked."""
    for name, value in flow.response.headers.fields:
        if any(byte in name or byte in value for byte in BREAKING):
            raise Refused(502, "malformed", "a header of the response has bytes that no header has")
    if 100 <= flow.response.status_code < 200 and flow.response.status_code != 101:
        raise Refused(502, "malformed", "an interim response takes the place of the response")
    if flow.response.status_code == 101 and flow.request.headers.get("upgrade", "").lower() != "websocket":
        raise Refused(502, "malformed", "the server switched protocols unasked")


def counting(flow: Any, name: str) -> Any:
    """Passes the parts of a body on, and counts their bytes."""

    def count(data: bytes) -> bytes:
        flow.metadata[name] = flow.metadata.get(name, 0) + len(data)
        return data

    return count


def plain(text: str) -> str:
    """One printable line."""
    ascii_only = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(each if each.isprintable() else " " for each in ascii_only[:MAX_TEXT])
