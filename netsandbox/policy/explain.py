"""Why a request was allowed or refused, and which change would turn the verdict: for people, and for agents that read a
refusal. Pure.

Rule kept: a change that is named here, once made, turns the verdict that it was named for.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy import name_lists, reasons
from netsandbox.policy.ip import parse
from netsandbox.policy.policy import DEFAULT_PORTS
from netsandbox.system import ORGANISATION_FILE
from netsandbox.text import join_host_port, shell_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from netsandbox.policy.policy import DomainRule, Policy
    from netsandbox.policy.verdict import Request, Verdict

_NAME_REASONS = (
    *(reasons.OFFLINE, reasons.NOT_ALLOWED, reasons.PORT_NOT_ALLOWED, reasons.DOH_ENDPOINT),
    *(reasons.DENIED_BY_USER, reasons.UNANSWERED),
)
_ADDRESS_REASONS = (reasons.OFFLINE, reasons.ADDRESS_LITERAL, reasons.ADDRESS_GUARD, reasons.DOH_ENDPOINT)
_BECAUSE = {
    reasons.RULE: "a rule allows it",
    reasons.ONLINE: "the session is online",
    reasons.LOOPBACK: "it is the session's own loopback",
    reasons.APPROVED: "the user approved it while the session ran",
    reasons.ASK: "no rule allows this host, and a connection to it asks the user",
    reasons.INSPECTED: "the host is inspected, and no rule for requests denies it",
    reasons.REQUEST_NOT_ALLOWED: "rules allow some requests to this host, but not this one",
    reasons.REQUEST_DENIED: "a rule for requests denies it",
    reasons.BUDGET: "a budget for this host, or for the session, is used up",
    reasons.OFFLINE: "the session is offline, so nothing leaves",
    reasons.NOT_ALLOWED: "no rule allows this host",
    reasons.DENY_RULE: "a deny rule names it",
    reasons.DOH_ENDPOINT: "it is a public resolver that would bypass the name filter",
    reasons.PORT_NOT_ALLOWED: "the host is allowed, this port is not",
    reasons.ADDRESS_LITERAL: "it is a bare address and no address rule allows it",
    reasons.ADDRESS_GUARD: "the address is guarded and no address rule allows it",
    reasons.BAD_NAME: "it is not a valid host name",
    reasons.BAD_PORT: "it is not a valid port",
    reasons.UDP: "no door carries UDP",
    reasons.DENIED_BY_USER: "the user denied it for the rest of the session",
    reasons.UNANSWERED: "the user was asked and nobody answered in time",
}

# Reasons of the doors and of the resolver: why, and what to do ("" where nothing helps).
TEXTS: dict[str, tuple[str, str]] = {
    reasons.QUERY_TYPE: (
        "DNS queries of this type are not forwarded",
        "forward them for allowed names with --allow-query-type TYPE",
    ),
    reasons.TUNNEL_LABEL: (
        "a long or random-looking name below a wildcard could carry data out",
        "allow this host exactly",
    ),
    reasons.TUNNEL_RATE: (
        "too many new names below one wildcard in a minute could carry data out",
        "allow the hosts exactly, or wait",
    ),
    reasons.LOOKUP_FAILED: (
        "it is allowed, but the name has no address or nobody answered",
        "check the name, the host's own network and --upstream-dns",
    ),
    reasons.UNREACHABLE: ("it is allowed and was tried, but no address answered", "check that the server runs"),
    reasons.MALFORMED: ("the bytes are no HTTP, SOCKS5 or DNS, or could be read in two ways", "correct the client"),
    reasons.UNSUPPORTED: (
        "no door carries this protocol or feature",
        "use another, such as HTTP CONNECT, SOCKS5 or HTTP/2 over TLS",
    ),
    reasons.HOST_MISMATCH: (
        "the Host header names another host than the one that was decided on",
        "let the client ask for the host that it connects to",
    ),
    reasons.SNI_MISMATCH: (
        "the TLS client names another host than the one that was decided on",
        "let the client name the host that it connects to",
    ),
    reasons.SNI_MISSING: ("the TLS client names no host", "let the client name the host that it connects to (SNI)"),
    reasons.TLS_UNREADABLE: ("the beginning of the TLS connection cannot be read whole", "correct the client"),
    reasons.ECH: ("Encrypted ClientHello hides which host is wanted", "turn it off in the client"),
    reasons.REQUEST_METHOD: ("CONNECT, TRACE and invalid methods are never passed to an inspected host", ""),
    reasons.REQUEST_UNCLEAR: (
        "the path, a header that replaces the method, or a body of a GET could be read in two ways, and rules depend"
        " on them",
        "send the path without encoded slashes, dot segments, // and ;, and the method itself",
    ),
    reasons.NOT_HTTP: (
        "rules for requests apply to this host, and this is not HTTP",
        "the user can exempt the host with --inspect-except HOST and allow it with --allow-domain",
    ),
    reasons.CERTIFICATE: (
        "the certificate of the server was not accepted: its CA is unknown, or it is for another name or time",
        "the user can add the server's CA to the system's or to the file in SSL_CERT_FILE, or correct the server",
    ),
    reasons.CLIENT_TLS: (
        "the client does not accept the certificate of the session's own CA, as a program with pinned keys would not",
        "let it trust the file in SSL_CERT_FILE, or exempt the host: --inspect-except HOST --allow-domain HOST",
    ),
    reasons.INSPECTION: (
        "the process that inspects requests ended or could not serve this one",
        "try again; if it persists, report it",
    ),
    reasons.SECRET_MISPLACED: (
        "it has the placeholder of a secret where no value is put: another host or place, a body, a WebSocket, or HTTP"
        " without TLS",
        "send it to its host, in its header or parameter; the user can add places with --secret NAME@HOST,header=NAME",
    ),
    reasons.SECRET_ANSWER: (
        "the server saw the value of a secret, and its answer is compressed or a part, so it cannot be searched for it",
        "let the server answer without compression",
    ),
    reasons.DEADLINE: ("the client took too long to send its request", "try again"),
    reasons.LIMIT: ("there were too many connections, questions or ports at once", "let it make fewer at a time"),
    reasons.SOCKET_FAMILY: ("raw, packet and other kinds of sockets could walk past the doors", ""),
    reasons.UNIX_SOCKET: (
        "a Unix socket of the host may lead to a program that is not confined",
        "if it needs one, name it with --allow-unix-socket PATH; many programs only ask whether there is one",
    ),
    reasons.NOT_SHOWN: (
        "the session does not see this path: it has the project, the system, toolchains and a private home",
        "show it with --allow-read PATH, or let the session write it with --allow-write PATH",
    ),
    reasons.MADE_LATER: (
        "the session does not see the host's file of this name, and then made its own",
        "if the command needs the host's, show it with --allow-read PATH",
    ),
    reasons.NOT_LISTED: (
        "only listed programs may be executed, and this one is not listed",
        "allow it with --allow-execute PATH",
    ),
    reasons.READ_ONLY: ("the session sees this path, but may not write it", "allow it with --allow-write PATH"),
    reasons.OUTSIDE_WINDOW: (
        "the port is not of the session's window",
        "take a port from LISTENING_BASE_PORT on, or use --network-strategy isolate",
    ),
    reasons.WRONG_DEVICE: (
        "the address is not the session's",
        "use localhost, or the address in LISTENING_LOOPBACK_DEVICE",
    ),
    reasons.WINDOW_FULL: (
        "no port of the session's window is left",
        "ask for more with --listening-port-count, or choose with --publish",
    ),
    reasons.PORT_TAKEN: (
        "a program of the host has the one port that would do",
        "stop that program, or choose with --publish PORT:HOSTPORT",
    ),
    reasons.NOT_PUBLISHED: (
        "another session wanted a port that this one does not publish",
        "publish it with --publish PORT",
    ),
    reasons.OWN_LOCALHOST: (
        "nothing listens at this port of the session's own localhost, and a server of the host does at its own",
        "bring the host's port into the session with --connect-host PORT",
    ),
    reasons.SEATBELT: (
        "the session's Seatbelt profile does not allow it",
        "`netsandbox run --dry-run --backend seatbelt` prints its rules",
    ),
    reasons.AUDIT_UNWRITABLE: ("the record could not be written, so nothing was dialled", "free space on the disk"),
    reasons.INTERNAL: (
        "a fault of netsandbox; denied to be safe",
        "report it, with the `policy` record beside it",
    ),
}


@frozen
class Explanation:
    """A verdict, its cause in one clause, and the smallest change that would turn it (None: no change does)."""

    verdict: Verdict
    because: str
    change: str | None


def explanation(policy: Policy, request: Request) -> Explanation:
    """Explain what *policy* decides on *request*."""
    verdict = policy.decide(request)
    return Explanation(verdict, because(verdict), _change(policy, verdict))


def because(verdict: Verdict) -> str:
    """The cause in one clause, with the rule and its origin."""
    text = _BECAUSE.get(verdict.reason, verdict.reason)
    if verdict.rule is not None:
        text += f": {verdict.rule} ({verdict.origin})"
    elif verdict.origin is not None:
        text += f" ({verdict.origin})"
    elif verdict.guard is not None:
        text += f": {verdict.address} is {verdict.guard}"
    return text


def flag_for(verdict: Verdict, default_ports: Collection[int] = DEFAULT_PORTS, query_type: str = "") -> str | None:
    """The option that would allow what *verdict* denies; None where no option does. *query_type*: of a DNS query."""
    closed_by = (verdict.origin or "") if verdict.reason == reasons.OFFLINE else ""
    if verdict.allowed or closed_by.startswith(ORGANISATION_FILE):
        return None
    flag = _flag(verdict, default_ports, query_type)
    excludes = closed_by.startswith(("--", "the profile ")) and not closed_by.endswith("localhost")
    return f"{flag} without {closed_by}" if flag and excludes else flag


def _flag(verdict: Verdict, default_ports: Collection[int], query_type: str) -> str | None:
    if verdict.reason == reasons.QUERY_TYPE and query_type:
        return f"--allow-query-type {query_type}"
    if verdict.address is not None:
        address = parse(verdict.address)
        if address is None or not verdict.port or verdict.reason not in _ADDRESS_REASONS:
            return None
        return f"--allow-address {join_host_port(address.text, verdict.port)}"
    if verdict.reason not in _NAME_REASONS or name_lists.is_resolver(verdict.host):
        return None
    written = verdict.port and verdict.port not in default_ports
    return f"--allow-domain {join_host_port(verdict.host, verdict.port) if written else verdict.host}"


def hint(verdict: Verdict, default_ports: Collection[int] = DEFAULT_PORTS) -> str:
    """One line after a refusal that has already named the host and the reason: the cause, and what would help."""
    why, advice = TEXTS.get(verdict.reason) or (because(verdict), "")
    flag = flag_for(verdict, default_ports)
    remedy = f"the user can allow it by starting the session with {flag}" if flag else advice or "no option allows it"
    if verdict.reason == reasons.DENY_RULE:
        remedy = f"the user can {_removal(verdict)}"
    if verdict.reason == reasons.BUDGET:
        remedy = "the user can start the session with a larger one"
    return f"{why[:1].upper()}{why[1:]}; {remedy}."


def excepting(policy: Policy, name: str) -> list[DomainRule]:
    """The deny rules that have an exception for the canonical *name*."""
    return [rule for rule in policy.deny_domains if any(each.covers(name) for each in rule.exceptions)]


def budget_notes(policy: Policy, host: str, ports: Collection[int]) -> list[str]:
    """A note for each budget that covers the canonical *host* at one of *ports*."""
    found = [rule for rule in policy.budgets if any(rule.covers(host, port) for port in ports)]
    scopes = ["it" if rule.domain is not None else "the whole session" for rule in found]
    return [f"a budget covers {scope}: {rule.text} ({rule.origin})" for scope, rule in zip(scopes, found, strict=True)]


def _removal(verdict: Verdict) -> str:
    """A wildcard may be meant for other names, so an exception is named too."""
    rule = verdict.rule or ""
    where = "remove {} from deny_domains" if verdict.origin != "--deny-domain" else "remove --deny-domain {}"
    text = where.format(shell_quoted(rule) if " " in rule else rule)
    if verdict.origin not in ("--deny-domain", "deny_domains"):
        text += f" ({verdict.origin})"
    if not rule.startswith("*"):
        return text
    return f"{text}, or except the name: '{rule}{', ' if ' except ' in rule else ' except '}{verdict.host}'"


def _change(policy: Policy, verdict: Verdict) -> str | None:
    if verdict.allowed:
        return None
    if verdict.reason == reasons.DENY_RULE:
        return _removal(verdict)
    return flag_for(verdict, policy.default_ports)
