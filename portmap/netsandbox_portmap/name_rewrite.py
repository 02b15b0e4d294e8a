"""Rewrites requests by name for a server that believes it is `localhost:PORT`, and its responses back. Pure.

Servers check Host and Origin against the address that they listen on (JupyterLab, Django, vite). So a server sees its
own address in Host, Origin and Referer, and its Location, Access-Control-Allow-Origin and cookies are translated back.

Rules:
1. Only origins of this session's own name become `localhost:PORT`. The name of another session passes as it is, and an
   origin that names a loopback address itself, which would look like the server's own, becomes `null`.
2. X-Forwarded headers of the client are replaced.
3. A header that names no such origin passes unchanged.
"""

from __future__ import annotations

from netsandbox.runtime.http.head import HeadCache
from netsandbox.runtime.http.request import rewrite
from netsandbox_portmap.request_host import parse_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.http.head import RequestHead
    from netsandbox.runtime.http.request import ForwardRequest

LOOPBACK = (b"127.", b"[::1]", b"[::]", b"0.0.0.0")
REWRITTEN = (b"location", b"access-control-allow-origin", b"set-cookie")


class NamedServer:
    """One server of a session, as clients of one Host see it. `published(port)` is whether a port has a name."""

    __slots__ = ("_main", "_own", "_peer", "_port", "_published", "host", "requests", "responses")

    def __init__(self, host: bytes, peer: bytes, ports: tuple[int, int], published: Callable[[int], bool]) -> None:
        self.host = host.lower()  # the Host header: the authority of the page's own origin
        self._peer = peer  # the client's address
        self._port, self._main = ports  # the server's, and the one that the name alone leads to
        self._published = published
        label, _, rest = self.host.partition(b".")
        self._own = rest if parse_label(label.decode("ascii")) is not None else self.host
        self.requests = HeadCache()  # head -> request, of requests without a body
        self.responses = HeadCache()  # head -> head for the client, length of the body, keep-alive

    def request(self, head: RequestHead) -> ForwardRequest:
        """The request for the server."""
        own = any(self._inside(value) is not None for value in head.get_all(b"origin"))
        extra = [b"X-Forwarded-For: " + self._peer, b"X-Forwarded-Proto: http"]
        # Some frameworks (Rails, Next.js) compare Origin with X-Forwarded-Host where there is one, others with Host.
        if not own:
            extra.append(b"X-Forwarded-Host: " + self.host)
        return rewrite(head, b"localhost", self._port, head.target, self._change, extra)

    def _change(self, name: bytes, value: bytes) -> bytes | None:
        if name == b"origin":
            return self._inside(value) or (b"null" if _is_loopback(value) else value)
        if name == b"referer":
            return self._inside(value) or (None if _is_loopback(value) else value)
        return None if name.startswith(b"x-forwarded-") or name == b"forwarded" else value

    def _inside(self, url: bytes) -> bytes | None:
        """*url* of this session as the server knows it; None if it is not of this session."""
        scheme, authority, path = split_origin(url)
        place = authority.lower()
        port: int | None = self._main if place == self._own else None
        if place.endswith(b"." + self._own):
            port = parse_label(place[: -len(self._own) - 1].decode("ascii", "replace"))
        return None if port is None else b"%s//localhost:%d%s" % (scheme, port, path)

    def response(self, lines: list[bytes], raw: bytes) -> bytes:
        """The head of a response for the client."""
        if b"localhost" not in raw.lower():
            return raw
        return b"\r\n".join([lines[0], *map(self._line, lines[1:])]) + b"\r\n\r\n"

    def remember(self, raw: bytes, changed: bytes, length: int, *, keep_alive: bool) -> None:
        """*changed* is the head for the client, and *length* that of the body. A Location may change with time, since
        what is published does."""
        if b"location" not in raw.lower():
            self.responses.add(raw, (changed, length, keep_alive))

    def _line(self, line: bytes) -> bytes:
        name, _, value = line.partition(b":")
        lower = name.lower()
        if lower not in REWRITTEN:
            return line
        value = value.strip(b" \t")
        changed = without_domain(value) if lower == b"set-cookie" else self._outside(value)
        return b"%s: %s" % (name, changed)

    def _outside(self, url: bytes) -> bytes:
        """*url* as clients of the name reach it."""
        scheme, authority, path = split_origin(url)
        host, _, digits = authority.lower().partition(b":")
        port = parse_label(digits.decode("ascii", "replace")) if host == b"localhost" and digits else None
        if port is None or not (port == self._port or self._published(port)):
            return url
        if port == self._port:
            return b"%s//%s%s" % (scheme, self.host, path)
        return b"%s//%s%s%s" % (scheme, b"" if port == self._main else b"%d." % port, self._own, path)


def split_origin(url: bytes) -> tuple[bytes, bytes, bytes]:
    """Scheme with its colon, authority, and the rest; a path alone has no authority."""
    scheme, slashes, rest = url.partition(b"//")
    if not slashes or scheme.lower() not in (b"http:", b"https:", b""):
        return b"", b"", url
    ends = [at for at in map(rest.find, (b"/", b"?", b"#")) if at >= 0]
    end = min(ends, default=len(rest))
    return scheme, rest[:end], rest[end:]


def _is_loopback(url: bytes) -> bool:
    authority = split_origin(url)[1].rpartition(b"@")[2].lower()
    host = authority if authority.startswith(b"[") else authority.partition(b":")[0].removesuffix(b".")
    return host == b"localhost" or host.startswith(LOOPBACK)


def without_domain(cookie: bytes) -> bytes:
    """*cookie* without the attribute Domain=localhost: it belongs to the host that set it, and to no other name."""
    first, *attributes = cookie.split(b";")
    kept = [part for part in attributes if not _names_localhost(part)]
    return b";".join([first, *kept])


def _names_localhost(attribute: bytes) -> bool:
    name, _, value = attribute.partition(b"=")
    return name.strip().lower() == b"domain" and value.strip(b' \t"').lower().lstrip(b".") == b"localhost"
