"""Our own HTTP responses: one line of plain text, after which the connection closes. Pure."""

from __future__ import annotations

PHRASES = {
    307: "Temporary Redirect",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


def plain_response(status: int, text: str, *headers: str, bodiless: bool = False) -> bytes:
    """A complete response; *headers* are ASCII and have no line ends. *bodiless*: the response to a HEAD."""
    body = f"netsandbox: {text}\n".encode("ascii", "backslashreplace")
    lines = (
        f"HTTP/1.1 {status} {PHRASES.get(status, 'Refused')}",
        "content-type: text/plain; charset=us-ascii",
        f"content-length: {len(body)}",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        *headers,
        "connection: close",
    )
    head = "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("ascii") + (b"" if bodiless else body)
