"""Rules for requests, `METHODS URL-PATTERN`: `GET,HEAD https://api.example.com/v1/**`. Pure.

The methods can be left out or be `*`. The host is a pattern as in rules for names, and the path a glob. Rules kept: a
text that is not plainly one rule is refused with a line that names what to write instead, and a pattern of a path must
be canonical itself, since no request could match it otherwise.
"""

from __future__ import annotations

from netsandbox.policy.http_paths import ANY, PathGlob, canonical_path
from netsandbox.policy.policy import DomainRule
from netsandbox.policy.rules import parse_domain, refuse
from netsandbox.text import did_you_mean, join_host_port, quoted

PORTS = {"http": 80, "https": 443}
NEVER = ("CONNECT", "TRACE")  # one leads elsewhere, the other shows what was sent
_USUAL = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")  # RFC 9110, 5.6.2


class HttpRule:
    """One rule for requests. Nobody writes to it."""

    __slots__ = ("_low_glob", "domain", "glob", "methods", "origin", "scheme", "text")

    def __init__(self, text: str, origin: str, scheme: str, domain: DomainRule, rest: tuple[tuple[str, ...], str]):
        self.text = text  # as the user wrote it
        self.origin = origin
        self.scheme = scheme
        self.domain = domain  # with its port first, or every port
        self.methods, path = rest  # no methods: every method
        self.glob = PathGlob(path)
        self._low_glob = PathGlob(path.lower().rstrip("/") or "/")

    def covers(self, host: str, port: int) -> bool:
        ports = self.domain.ports
        return self.domain.covers(host) and (not ports or port in ports)

    def allows(self, scheme: str, method: str, path: str) -> bool:
        """Exact, also the scheme: a rule for https allows nothing that is sent in the clear."""
        return scheme == self.scheme and self.has_method(method) and self.glob.matches(path)

    def denies(self, method: str, path: str) -> bool:
        """Generous: whatever the scheme, the method and the path in any case, with and without a slash at its end."""
        if not self.has_method(method.upper()):
            return False
        low = path.lower()
        return self._low_glob.matches(low) or (low.endswith("/") and self._low_glob.matches(low[:-1] or "/"))

    def has_method(self, method: str) -> bool:
        return not self.methods or method in self.methods

    def __repr__(self) -> str:
        return f"HttpRule({self.text!r}, {self.origin!r})"


def parse_http(text: str, origin: str, *, deny: bool = False) -> HttpRule:
    """Read one rule. The port is the URL's, or that of its scheme; a rule that denies is about both schemes."""
    words = text.split()
    if not 1 <= len(words) <= 2:
        refuse(origin, text, "is not methods and a URL", "write 'GET,HEAD https://api.example.com/v1/**'")
    methods = _methods(words[0], text, origin, deny=deny) if len(words) == 2 else ()
    scheme, separator, rest = words[-1].partition("://")
    if not separator or scheme not in PORTS:
        refuse(origin, text, "has no http or https URL", "write 'GET https://api.example.com/v1/**'")
    authority, slash, path = rest.partition("/")
    if "@" in authority or "?" in rest or "#" in rest:
        refuse(origin, text, "has more than a host and a path", "leave user names, queries and fragments out")
    found = parse_domain(authority, origin, deny=deny)
    ports = found.ports
    if ports is None:  # a rule that denies ignores the scheme, so it is about the other one's port too
        ports = (PORTS[scheme], *(port for port in PORTS.values() if deny and port != PORTS[scheme]))
    domain = DomainRule(text, origin, found.name, ports, apex=found.apex, below=found.below)
    return HttpRule(text, origin, scheme, domain, (methods, _path(f"/{path}" if slash else "/**", text, origin)))


def is_token(text: str) -> bool:
    """Whether *text* can be the method of a request, or the name of a header."""
    return bool(text) and _TOKEN.issuperset(text)


def base_url(scheme: str, host: str, port: object) -> str:
    """`https://example.com`, with the port if there is one that is not the scheme's."""
    place = host if port in (None, PORTS.get(scheme)) else join_host_port(host, port)
    return f"{scheme}://{place}"


def _methods(given: str, text: str, origin: str, *, deny: bool) -> tuple[str, ...]:
    if given == "*":
        return ()
    methods = tuple(given.split(","))
    for method in methods:
        if not is_token(method) or "*" in method or method != method.upper():
            refuse(origin, text, f"has the method {quoted(method)}", "write methods such as GET,HEAD or *")
        if method in NEVER and not deny:
            refuse(origin, text, f"allows {method}, which is never allowed in an inspected connection", "leave it out")
        if method not in _USUAL and (meant := _meant(method)):
            refuse(origin, text, f"has the method {quoted(method)}", meant)
    return methods


def _meant(method: str) -> str:
    """The advice for a slip of the fingers, with which a deny rule would deny nothing; empty for other methods."""
    swapped = [usual for usual in _USUAL if sorted(usual) == sorted(method)]
    return f"did you mean {swapped[0]}?" if swapped else did_you_mean(method, _USUAL, "", 0.8)


def _path(pattern: str, text: str, origin: str) -> str:
    path = canonical_path(pattern if pattern.isascii() else _encoded(pattern))
    if path is None:
        refuse(origin, text, "has a path that could be read in two ways", "leave //, dot segments, ; and %2f out")
    if any(ANY in segment and segment != ANY for segment in path.split("/")):
        refuse(origin, text, "has ** inside a segment", "write ** between slashes, or * within a segment")
    return path


def _encoded(pattern: str) -> str:
    """Letters outside ASCII as requests spell them."""
    return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in pattern.encode("utf-8", "replace"))
