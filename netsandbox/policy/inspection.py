"""Inspection: which connections are inspected, and the decision on each request in them. Pure.

A connection is inspected if a rule for requests or `--inspect` covers its host and port and no `--inspect-except` does.
The decision on a request, in this order:

1. CONNECT and TRACE are denied: one leads elsewhere, the other shows headers that were added on the way.
2. A deny rule wins over every allow (INV-6).
3. If an allow rule names the host and port, one of them must match. Otherwise what is not denied is allowed.
4. A request that servers could read in two ways (its path, a header that replaces the method, a body of a GET) is
   allowed only where no rule makes a difference between the readings (attack 42).
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.policy import reasons
from netsandbox.policy.decision import is_loopback_name
from netsandbox.policy.http_index import HttpRuleIndex
from netsandbox.policy.http_paths import canonical_path
from netsandbox.policy.http_rules import NEVER, HttpRule, base_url, is_token, parse_http
from netsandbox.policy.policy import DEFAULT_PORTS, DomainRule
from netsandbox.policy.rules import as_written, parse_domain
from netsandbox.policy.trie import EVERY_PORT, NameTrie
from netsandbox.policy.verdict import Verdict, verdict
from netsandbox.text import quoted, shell_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Given = Iterable[tuple[str, str]]  # a text and its origin


EVERY_HOST = "*"


@frozen
class HttpRequest:
    """One request inside a connection whose host and port are decided."""

    scheme: str
    method: str
    target: str  # path and query, as they were sent
    is_unclear: bool = False  # a header such as X-HTTP-Method-Override, or a body of a GET
    secrets: str = ""  # the names of the secrets that are put into it, for its record


@frozen
class RequestEnd:
    """The end of a request that was allowed: the status of its response, the bytes of both bodies, and the time."""

    number: int
    request: HttpRequest
    status: int
    up: int
    down: int
    milliseconds: int


class Inspection:
    """The rules for requests of one session. Nobody writes to it."""

    __slots__ = (
        *("_allowing", "_denying", "_every", "_excepted", "_hosts"),
        *("allow", "default_ports", "deny", "excepted", "hosts", "records_query"),
    )

    def __init__(
        self,
        allow: tuple[HttpRule, ...] = (),
        deny: tuple[HttpRule, ...] = (),
        hosts: tuple[DomainRule, ...] = (),
        excepted: tuple[DomainRule, ...] = (),
        default_ports: tuple[int, ...] = DEFAULT_PORTS,
        *,
        records_query: bool = False,
    ) -> None:
        self.allow = allow
        self.deny = deny
        self.hosts = hosts
        self.excepted = excepted
        self.default_ports = default_ports
        self.records_query = records_query  # queries are recorded too, without credentials
        self._allowing, self._denying = HttpRuleIndex(allow), HttpRuleIndex(deny)
        self._every = [default_ports if rule.ports is None else rule.ports for rule in hosts if not rule.name]
        self._hosts, self._excepted = NameTrie(hosts, default_ports), NameTrie(excepted, default_ports)

    def covers(self, host: str, port: int) -> bool:
        """Whether connections to *host* and *port* are inspected."""
        if self.excepts(host, port):
            return False
        has_rules = self._allowing.covers(host, port) or self._denying.covers(host, port)
        return has_rules or self._hosts.match(host, port) is not None or self._is_every(host, port)

    def _is_every(self, host: str, port: int) -> bool:
        """Whether every host is inspected at *port*. The session's own localhost is not meant."""
        return any(not ports or port in ports for ports in self._every) and not is_loopback_name(host)

    def excepts(self, host: str, port: int) -> bool:
        """Whether an `--inspect-except` covers *host* and *port*."""
        return self._excepted.match(host, port) is not None

    @property
    def implied_domains(self) -> tuple[DomainRule, ...]:
        """The names that rules for requests allow to be reached. A host that is not inspected needs its own rule."""
        return tuple(_implied(rule, self.excepted, self.default_ports) for rule in self.allow)

    def decide(self, host: str, port: int, request: HttpRequest) -> Verdict:
        """The verdict on one request of an inspected connection."""
        method, path = request.method, canonical_path(request.target)
        if not is_token(method) or method.upper() in NEVER:
            return verdict(reasons.REQUEST_METHOD, host, port)
        is_listed = self._allowing.covers(host, port)
        if request.is_unclear and (is_listed or self._denying.covers(host, port)):
            return verdict(reasons.REQUEST_UNCLEAR, host, port)
        if path is None:
            found = self._allowing.rules(host, port), self._denying.rules(host, port)
            return _without_path(host, port, request, *found)
        for rule in self._denying.rules(host, port, path):
            if rule.denies(method, path):
                return verdict(reasons.REQUEST_DENIED, host, port, rule=rule.text, origin=rule.origin)
        for rule in self._allowing.rules(host, port, path):
            if rule.allows(request.scheme, method, path):
                return verdict(reasons.RULE, host, port, allowed=True, rule=rule.text, origin=rule.origin)
        reason = reasons.REQUEST_NOT_ALLOWED if is_listed else reasons.INSPECTED
        return verdict(reason, host, port, allowed=not is_listed)


def _without_path(
    host: str, port: int, request: HttpRequest, allowing: list[HttpRule], denying: list[HttpRule]
) -> Verdict:
    """The verdict if it is the same for every path; no path of the host decides it otherwise."""
    if not any(rule.has_method(request.method.upper()) for rule in denying):
        if not allowing:
            return verdict(reasons.INSPECTED, host, port, allowed=True)
        for rule in allowing:
            if rule.glob.is_every_path and rule.scheme == request.scheme and rule.has_method(request.method):
                return verdict(reasons.RULE, host, port, allowed=True, rule=rule.text, origin=rule.origin)
    return verdict(reasons.REQUEST_UNCLEAR, host, port)


def inspection(
    allow: Given = (),
    deny: Given = (),
    hosts: Given = (),
    excepted: Given = (),
    default_ports: tuple[int, ...] = DEFAULT_PORTS,
    *,
    records_query: bool = False,
) -> Inspection | None:
    """The rules as people write them, each with its origin; None if there are none."""
    found = Inspection(
        tuple(parse_http(text, origin) for text, origin in allow),
        tuple(parse_http(text, origin, deny=True) for text, origin in deny),
        tuple(parse_host(text, origin) for text, origin in hosts),
        tuple(parse_domain(text, origin, deny=True) for text, origin in excepted),
        default_ports,
        records_query=records_query,
    )
    for rule in (*found.allow, *found.deny):
        name = rule.domain.name
        if not rule.domain.below and found.excepts(name, (rule.domain.ports or (EVERY_PORT,))[0]):
            option = as_written("--inspect-except", rule.origin)
            raise UsageError(
                f"{rule.origin}: {rule.text!a} is about a host that is not inspected; leave it or {option} out"
            )
    return found if found.allow or found.deny or found.hosts else None


def parse_host(text: str, origin: str) -> DomainRule:
    """A host to inspect: a pattern of names, or `*` for every name but localhost."""
    if text.partition(":")[0] != EVERY_HOST:
        return parse_domain(text, origin, deny=True)
    ports = parse_domain(f"localhost{text[1:]}", origin, deny=True).ports
    return DomainRule(text, origin, "", ports, apex=False, below=True)


def ruled_ports(host: DomainRule, allowing: Iterable[DomainRule]) -> tuple[int, ...]:
    """The ports of a host that was named without one, if every rule that allows it names others than the usual ones;
    none if the usual ones are meant."""
    if host.ports is not None:
        return ()
    found: set[int] = set()
    for rule in allowing:
        if rule.covers(host.name) or (rule.below and host.below and rule.name == host.name):
            if not rule.ports or not set(DEFAULT_PORTS).isdisjoint(rule.ports):
                return ()
            found.update(rule.ports)
    return tuple(sorted(found))


def _implied(rule: HttpRule, excepted: tuple[DomainRule, ...], default_ports: tuple[int, ...]) -> DomainRule:
    domain = rule.domain
    exceptions = tuple(
        DomainRule(each.text, each.origin, each.name, default_ports if each.ports is None else each.ports,
                   apex=each.apex, below=each.below)
        for each in excepted
    )  # fmt: skip
    return DomainRule(
        rule.text, rule.origin, domain.name, domain.ports, apex=domain.apex, below=domain.below, exceptions=exceptions
    )


def request_rule(host: str, port: int, request: HttpRequest) -> str | None:
    """The rule that allows this request and no other; None where there is none: a `*` in a path would be a wildcard."""
    path = canonical_path(request.target)
    if path is None or "*" in path or not is_token(request.method) or request.method != request.method.upper():
        return None
    return f"{request.method} {base_url(request.scheme, host, port)}{path}"


def request_flag(decided: Verdict, request: HttpRequest) -> str | None:
    """The option that would allow a request that no rule allows; None where no option does."""
    if decided.reason != reasons.REQUEST_NOT_ALLOWED:
        return None
    rule = request_rule(decided.host, decided.port, request)
    return None if rule is None else f"--allow-http {shell_quoted(rule)}"


def request_hint(decided: Verdict, request: HttpRequest) -> str | None:
    """One line for the reader of the refusal: the cause, and what would help. None: the reason has a text anyway."""
    if decided.reason == reasons.REQUEST_NOT_ALLOWED:
        flag = request_flag(decided, request) or "an --allow-http rule that covers it"
        over = " over http, which no rule for https allows" if request.scheme == "http" else ""
        return (
            f"Rules allow some requests to this host, but not {quoted(request.method)[1:-1]} of this path{over};"
            f" the user can allow it by starting the session with {flag}."
        )
    if decided.reason == reasons.REQUEST_DENIED:
        return f"A rule for requests denies it; the user can remove {decided.rule} ({decided.origin})."
    return None
