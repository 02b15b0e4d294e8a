"""`netsandbox explain 'POST https://api.example.com/v1/x'`: the verdict on a request, under rules for requests.

The host is decided first, as at every door, then the request (INV-3). A rule that denies the request is named even if
the host is not allowed, since it would still deny it then. Without a method it is GET.
"""

from __future__ import annotations

import json

from netsandbox.cli.help import print_lines
from netsandbox.cli.terminal import print_text
from netsandbox.errors import UsageError
from netsandbox.policy import reasons
from netsandbox.policy.explain import TEXTS, because, budget_notes, flag_for
from netsandbox.policy.http_rules import PORTS
from netsandbox.policy.inspection import HttpRequest, request_flag
from netsandbox.policy.names import Host, canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import parse_domain
from netsandbox.policy.verdict import TCP, Request, Verdict
from netsandbox.text import quoted, single_line


def read_request(text: str) -> tuple[str, int, HttpRequest]:
    """Host, port and request of `[METHOD] URL`."""
    words = text.split()
    scheme, separator, rest = words[-1].partition("://") if 1 <= len(words) <= 2 else ("", "", "")
    if not separator or scheme not in PORTS:
        raise UsageError(f"{quoted(text)} is not a request; write 'POST https://api.example.com/v1/x'")
    authority, slash, path = rest.partition("/")
    domain = parse_domain(authority, "explain", deny=True)
    if domain.below or domain.ports == ():
        raise UsageError(f"{quoted(text)} names no single host; write 'POST https://api.example.com/v1/x'")
    port = domain.ports[0] if domain.ports else PORTS[scheme]
    method = words[0] if len(words) == 2 else "GET"
    return domain.name, port, HttpRequest(scheme, method, f"{slash or '/'}{path.partition('#')[0]}")


def decided(policy: Policy, text: str) -> tuple[Verdict, str | None]:
    """The verdict, and the option that would allow what it denies."""
    host, port, request = read_request(text)
    return decided_request(policy, canonical(host), port, request)


def decided_request(policy: Policy, host: Host, port: int, request: HttpRequest) -> tuple[Verdict, str | None]:
    reached = policy.decide(Request(host, port, TCP))
    rules = policy.inspection
    found = rules.decide(host.text, port, request) if rules is not None and rules.covers(host.text, port) else None
    if not reached.allowed and (found is None or not _is_closed_twice(reached, found)):
        return reached, flag_for(reached, policy.default_ports)
    return (reached, None) if found is None else (found, request_flag(found, request))


def _is_closed_twice(reached: Verdict, found: Verdict) -> bool:
    """Whether the request stays denied once an option allows its host."""
    return found.reason == reasons.REQUEST_DENIED and reached.reason != reasons.DENY_RULE


def _host_notes(policy: Policy, found: Verdict) -> list[str]:
    """A note if the host of a request that a rule denies is closed too."""
    if found.reason != reasons.REQUEST_DENIED:
        return []
    reached = policy.decide(Request(canonical(found.host), found.port, TCP))
    option = flag_for(reached, policy.default_ports)
    remedy = f"; {option} allows it" if option else ""
    return [] if reached.allowed else [f"its host is denied too: {because(reached)}{remedy}"]


def answer(text: str, policy: Policy, *, as_json: bool) -> int:
    """Print the verdict; the exit status."""
    found, change = decided(policy, text)
    why, advice = TEXTS.get(found.reason) or (because(found), "")
    notes = [*_host_notes(policy, found), *budget_notes(policy, found.host, (found.port,))]
    if as_json:
        verdict = {"allowed": found.allowed, "reason": found.reason, "because": why, "rule": found.rule}
        more = {"origin": found.origin, "change": change, "notes": notes}
        print_text(json.dumps({"v": 1, "request": text, **verdict, **more}, indent=2))
    else:
        lines = [text, f"  {'allowed' if found.allowed else 'denied':<8} {why}"]
        if not found.allowed:
            remedy = f"to allow it: {change}" if change else advice or "remove that rule to allow it"
            lines.append(f"  {'':<8} {remedy}")
        lines += [f"  note: {note}" for note in notes]
        print_lines(map(single_line, lines))
    return 0 if found.allowed else 1
