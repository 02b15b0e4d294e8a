"""Findings about ways out: what a rule says about the network, and what the models say it may mean. Pure.

First each rule is read for forms that are known to open more than they say. Then a few connections that no confined
program should be able to make are put to all the rules, under every model: whatever opens one of them is found, however
it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.seatbelt_model.filters import ANY, LOCAL, REMOTE, End, Filter, UnixEnd, plain
from tests.seatbelt_model.findings import ERROR, Finding, error, warning
from tests.seatbelt_model.openings import openings
from tests.seatbelt_model.profile import ALLOW, Rule
from tests.seatbelt_model.request import UDP, Request, connect, connect_unix, lookup

OUTBOUND = ("network*", "network-outbound")
LISTENING = ("network-inbound", "network-bind")
RESOLVER_SERVICES = ("com.apple.dnssd.service", "com.apple.mDNSResponder")
RESOLVER_SOCKET = "/private/var/run/mDNSResponder"
_RESOLVER = "is open, by which any name, and so any data, leaves in a DNS question"
_WAYS_OUT = (
    (connect("203.0.113.7", 443), "a connection to any address"),
    (connect("2001:db8::7", 443), "a connection to any IPv6 address"),
    (connect("203.0.113.7", 53, UDP), "a datagram to any name server"),
)
_ADVICE = 'allow only (remote tcp "localhost:PORT") of the proxy'


def network_findings(rules: Sequence[Rule]) -> list[Finding]:
    found: list[Finding] = []
    told = set()
    for rule in rules:
        own = list(_rule_findings(rule))
        found += own
        if any(finding.severity == ERROR for finding in own):
            told.add((rule.source, rule.line))
    found += _resolver_findings(rules)
    return found + [finding for finding in _ways_out(rules) if (finding.source, finding.line) not in told]


def _rule_findings(rule: Rule) -> Iterator[Finding]:
    if any(name in OUTBOUND for name in rule.operations):
        yield from _outbound(rule)
    elif any(name in LISTENING for name in rule.operations):
        yield from _listening(rule)


def _outbound(rule: Rule) -> Iterator[Finding]:
    allows = rule.action == ALLOW
    if rule.filter is None:
        if allows:
            text = f"an unfiltered network allow opens every way out; {_ADVICE}"
            yield error(rule.line, "unfiltered-network", text, rule.source)
        return
    for leaf in plain(rule.filter):
        if isinstance(leaf, End) and leaf.side == LOCAL:
            yield _local_on_outbound(rule, leaf)
    for leaf in plain(rule.filter, narrowing=False) if allows else ():
        yield from _remote(rule, leaf)


def _local_on_outbound(rule: Rule, leaf: Filter) -> Finding:
    remedy = "use `remote` on network-outbound, and `local` on network-bind and network-inbound only"
    if rule.action == ALLOW:
        text = f"`local` on an outbound rule has been seen to open every way out, and to match nothing; {remedy}"
        return error(leaf.line, "local-outbound", text, rule.source)
    text = f"`local` on an outbound rule has been seen to match nothing, and then this denies nothing; {remedy}"
    return warning(leaf.line, "local-outbound", text, rule.source)


def _remote(rule: Rule, leaf: Filter) -> Iterator[Finding]:
    if isinstance(leaf, UnixEnd) and not leaf.parts:
        text = "every Unix socket can be reached, the resolver's and those of container engines too; name each by path"
        yield error(leaf.line, "any-socket", text, rule.source)
    if not isinstance(leaf, End) or leaf.side != REMOTE:
        return
    port = "*" if leaf.port is None else leaf.port
    if leaf.host == ANY:
        what = "any name server, and so anybody, in DNS questions" if leaf.port == 53 else "every host there is"
        yield error(leaf.line, "any-host", f"*:{port} reaches {what}; {_ADVICE}", rule.source)
    elif leaf.port is None:
        text = "localhost:* reaches every service of this machine; name the ports that are needed"
        yield warning(leaf.line, "any-local-port", text, rule.source)


def _listening(rule: Rule) -> Iterator[Finding]:
    if rule.action != ALLOW:
        return
    leaves = [] if rule.filter is None else plain(rule.filter, narrowing=False)
    open_ends = [leaf for leaf in leaves if isinstance(leaf, End) and leaf.side == LOCAL and leaf.host == ANY]
    if rule.filter is None or open_ends:
        line = open_ends[0].line if open_ends else rule.line
        text = 'servers can listen for other machines too; write (local tcp "localhost:PORT")'
        yield warning(line, "any-listener", text, rule.source)


def _resolver_findings(rules: Sequence[Rule]) -> Iterator[Finding]:
    for service in RESOLVER_SERVICES:
        remedy = "name the services that are needed, without it"
        yield from _probe(rules, lookup(service), f"the mach service {service} {_RESOLVER}", remedy, "resolver")
    what = f"the socket {RESOLVER_SOCKET} {_RESOLVER}"
    yield from _probe(rules, connect_unix(RESOLVER_SOCKET), what, "let the proxy resolve names", "resolver")


def _ways_out(rules: Sequence[Rule]) -> Iterator[Finding]:
    for request, what in _WAYS_OUT:
        yield from _probe(rules, request, f"{what} gets out", _ADVICE, "way-out")


def _probe(rules: Sequence[Rule], request: Request, what: str, remedy: str, check: str) -> Iterator[Finding]:
    for rule, condition in openings(rules, request):
        yield error(rule.line, check, f"{what}{condition}; {remedy}", rule.source)
