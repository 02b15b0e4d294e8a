"""Rules for secrets that stay outside, `NAME@HOST[,HOST…][,header=NAME|,query=NAME]…`. Pure; no value is ever here.

    GITHUB_TOKEN@api.example.com                        in the Authorization header
    EXAMPLE_KEY@api.example.com:8443,header=x-api-key   in this header
    EXAMPLE_KEY@api.example.com,query=key               in this parameter of the query
    GITHUB_TOKEN@api.example.com,command=gh auth token  the value is what this command prints; the rest is its words

Other parts: `env=NAME`, `file=PATH` (the rest of the text) for the value, `registry=npm` for the hosts of a tool,
`git=USER` to let git use it as the password of this user, `body=pass` to let bodies to these hosts have the
placeholder, `optional=yes` to leave the secret out without a value, or if a variable of `unless=NAME` is set.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.http_rules import PORTS, is_token
from netsandbox.policy.rules import parse_domain, refuse
from netsandbox.policy.variables import check_name
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.policy import DomainRule

AUTHORIZATION = "authorization"
HTTPS = PORTS["https"]
WANTED = "write GITHUB_TOKEN@api.example.com, with ,header=x-api-key or ,query=key if needed"
SOURCES = ("env", "file", "command")
RESTS = ("file", "command")  # their value is the rest of the text
FLAGS = ("body", "optional")
PARTS = (*SOURCES, *FLAGS, "header", "query", "registry", "git", "unless")
FRAMING = frozenset(  # headers that say where a request goes or ends
    ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive")
)
_PARAMETER = frozenset("-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


@frozen
class SecretRule:
    """Where the value of one variable comes from, and the place of a request that gets it."""

    text: str
    origin: str
    name: str  # of the variable inside
    hosts: tuple[DomainRule, ...]
    registries: tuple[str, ...]  # tools whose registries are hosts too
    places: tuple[tuple[str, str], ...]  # `header` or `query`, and its name
    source: tuple[str, str]  # one of SOURCES, and its value
    flags: tuple[str, ...] = ()
    git: str = ""
    unless: tuple[str, ...] = ()

    @property
    def is_optional(self) -> bool:
        return "optional" in self.flags

    def covers(self, host: str, port: int) -> bool:
        return any(covers(domain, host, port) for domain in self.hosts)


def covers(domain: DomainRule, host: str, port: int) -> bool:
    """Without a port it is that of https."""
    ports = (HTTPS,) if domain.ports is None else domain.ports
    return domain.covers(host) and (not ports or port in ports)


def parse_secret(text: str, origin: str) -> SecretRule:
    """Read one rule."""
    name, at, rest = text.partition("@")
    if not at or not rest:
        refuse(origin, text, "is not NAME@HOST", WANTED)
    check_name(name, origin)
    hosts: list[DomainRule] = []
    found: dict[str, list[str]] = {}
    for part in _parts(rest):
        key, separator, value = part.partition("=")
        if not separator:
            hosts.append(parse_secret_host(part, text, origin))
        elif key not in PARTS or not value:
            refuse(origin, text, f"has {quoted(part)}", WANTED)
        else:
            found.setdefault(key, []).append(value)
    registries = tuple(found.pop("registry", ()))
    if not hosts and not registries:
        refuse(origin, text, "names no host", WANTED)
    flags = tuple(key for key in FLAGS if found.pop(key, None))
    places = tuple(_place(key, value, text, origin) for key in ("header", "query") for value in found.pop(key, ()))
    user, unless = "".join(found.pop("git", ())), tuple(found.pop("unless", ()))
    if not _PARAMETER.issuperset(user):
        refuse(origin, text, f"has the user {quoted(user)}", "write its name, such as git=x-access-token")
    if sum(map(len, found.values())) > 1:
        refuse(origin, text, "has two sources of its value", "leave one of them out")
    source = next(((key, values[0]) for key, values in found.items()), ("env", name))
    if source[0] == "env":
        check_name(source[1], origin)
    places = places or (("header", AUTHORIZATION),)
    return SecretRule(text, origin, name, tuple(hosts), registries, places, source, flags, user, unless)


def parse_secret_host(pattern: str, text: str, origin: str) -> DomainRule:
    """A name, a pattern as in rules that allow names, or a URL of https."""
    if pattern.lower().startswith("http:"):
        refuse(origin, text, "would send the value in the clear", "write https, or the host alone")
    return parse_domain(pattern, origin)


def _parts(rest: str) -> list[str]:
    parts: list[str] = []
    while rest:
        if rest.partition("=")[0] in RESTS:
            return [*parts, rest]
        part, _, rest = rest.partition(",")
        parts.append(part)
    return parts


def _place(kind: str, name: str, text: str, origin: str) -> tuple[str, str]:
    if kind == "query":
        if not _PARAMETER.issuperset(name):
            refuse(origin, text, f"has the parameter {quoted(name)}", "write its name, such as query=key")
        return kind, name
    header = name.lower()
    if not is_token(header) or header in FRAMING or header.startswith(("proxy-", "x-netsandbox-", "sec-")):
        refuse(origin, text, f"has the header {quoted(name)}", "write one such as header=x-api-key")
    return kind, header
