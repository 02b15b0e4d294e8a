"""The engine's own answers, in the style of the client's protocol: HTTP, or gRPC with its status and message."""

from __future__ import annotations

from mitmproxy import http

from netsandbox.text import printable

GRPC = b"application/grpc"
PERMISSION_DENIED, UNAVAILABLE = "7", "14"  # grpc/status.h
MAX_TEXT = 600


def refusal(request: http.Request, status: int, reason: str, sentence: str) -> http.Response:
    """A complete response that says no."""
    reason, text = printable(reason, MAX_TEXT), printable(sentence, MAX_TEXT)
    if request.headers.get("content-type", "").encode("utf-8", "replace").startswith(GRPC):
        return _grpc(status, reason, text)
    made = http.Response.make(
        status,
        b"" if request.method == "HEAD" else f"netsandbox: {text}\n".encode("ascii", "backslashreplace"),
        {
            "content-type": "text/plain; charset=us-ascii",
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            "x-netsandbox-reason": reason,
        },
    )
    made.http_version = request.http_version
    return made


def _grpc(status: int, reason: str, text: str) -> http.Response:
    """A response of trailers alone (grpc, PROTOCOL-HTTP2.md)."""
    code = PERMISSION_DENIED if status < 500 else UNAVAILABLE
    message = f"netsandbox: {text}".replace("%", "%25")
    headers = {"content-type": "application/grpc", "grpc-status": code, "grpc-message": message}
    made = http.Response.make(200, b"", {**headers, "x-netsandbox-reason": reason})
    del made.headers["content-length"]
    made.http_version = "HTTP/2.0"
    return made


def client_certificate_hint(host: str) -> str:
    """For a server that ends the connection: the engine has no certificate of a client to show."""
    return f"If it wants a certificate from its clients, the user can exempt it with --inspect-except {host}."


def error_response(status: int, message: str = "") -> bytes:
    """What an HTTP/1 client gets for a fault of a connection; takes the place of mitmproxy's page."""
    text = f"netsandbox: {printable(message, MAX_TEXT)}\n".encode("ascii", "backslashreplace")
    head = (
        f"HTTP/1.1 {status} Refused\r\ncontent-type: text/plain; charset=us-ascii\r\n"
        f"content-length: {len(text)}\r\nx-netsandbox-reason: {'malformed' if status < 500 else 'unreachable'}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode("ascii") + text
