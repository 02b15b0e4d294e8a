"""What a client hears from us instead of from the origin.

A refusal is read by people and by agents: it names the host, the reason and what would change the answer, and it says
that trying again will not. Hostile bytes never get into a header or onto a second line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox_proxy.head import RequestHead

CONNECT_OK = b"HTTP/1.1 200 Connection established\r\n\r\n"

PHRASES = {
    400: "Bad Request",
    403: "Forbidden",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
STATUSES = {
    "malformed": 400,
    "unsupported": 400,
    "bad-name": 400,
    "bad-port": 400,
    "host-mismatch": 421,
    "deadline": 408,
    "lookup-failed": 502,
    "unreachable": 502,
    "limit": 503,
    "audit-unwritable": 503,
    "internal": 500,
}
MAX_TEXT = 300


def status_for(reason: str) -> int:
    """The status that answers a reason; what is not a fault of the request or the network was policy."""
    return STATUSES.get(reason, 403)


def refusal_response(status: int, reason: str, host: str, port: int, hint: str) -> bytes:
    """A complete response; the connection closes behind it."""
    body = f"netsandbox: {_sentence(status, printable(reason), printable(host), port)} {printable(hint)}".rstrip()
    payload = body.encode("ascii") + b"\n"
    lines = [
        f"HTTP/1.1 {status} {PHRASES.get(status, 'Refused')}",
        f"x-netsandbox-reason: {printable(reason)}",
        "content-type: text/plain; charset=us-ascii",
        f"content-length: {len(payload)}",
        "cache-control: no-store",
        "connection: close",
    ]
    if status == 407:
        lines.append('proxy-authenticate: Basic realm="netsandbox"')
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + payload


def _sentence(status: int, reason: str, host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    where = f"{name}:{port}" if host else "the request"
    if reason == "unanswered":
        return f"{where} was refused by the sandbox's network policy ({reason}); tell the user before you try again."
    if status in (403, 421):
        return f"{where} was refused by the sandbox's network policy ({reason}); retrying will not help."
    if status == 407:
        return "this proxy belongs to another session: the session's token is missing or wrong."
    if status == 502:
        return f"{where} is allowed by policy, but it could not be reached or gave no usable answer ({reason})."
    if status in (500, 503):
        return f"{where} was refused because the sandbox could not serve it ({reason})."
    return f"{where} was refused: the proxy could not accept the request as it was sent ({reason})."


def printable(text: str) -> str:
    """*text* on one line of printable ASCII, and no longer than a line should be."""
    safe = "".join(char if " " <= char <= "~" else ascii(char)[1:-1] for char in text[:MAX_TEXT])
    return safe if len(text) <= MAX_TEXT else safe + "..."


def basic_token(head: RequestHead) -> bytes | None:
    """The password of `Proxy-Authorization: Basic`, which is where a session's token travels; None if there is none."""
    values = head.get_all(b"proxy-authorization")
    if len(values) != 1:
        return None
    scheme, _, encoded = values[0].partition(b" ")
    if scheme.lower() != b"basic":
        return None
    import binascii

    try:
        pair = binascii.a2b_base64(encoded.strip(b" "), strict_mode=True)
    except binascii.Error:
        return None
    _, colon, password = pair.partition(b":")
    return password if colon else None
