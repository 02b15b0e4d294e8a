"""The effective policy for people and for programs. Pure: a policy in, lines or plain values out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netsandbox.cli.file_notices import project_folder
from netsandbox.config.file_settings import FileSettings
from netsandbox.policy.file_rules import OPEN, PROJECT, READABLE, FileRules
from netsandbox.policy.policy import FILTERED, LOCALHOST, OFFLINE, ONLINE, AddressRule, DomainRule, Policy
from netsandbox.settings import RunSettings

Rule = DomainRule | AddressRule

MODES = {
    OFFLINE: "nothing leaves",
    LOCALHOST: "nothing leaves; the session's own localhost works",
    FILTERED: "what a rule allows, and nothing else",
    ONLINE: "everything that is not denied below",
}
ALWAYS_DENIED = (
    "known DNS-over-HTTPS and DNS-over-TLS services, whatever allows them",
    "the host's own addresses, loopback, private, link-local and metadata addresses without an address rule",
    "UDP other than DNS to the session's resolver",
    "raw, packet and other socket families, io_uring, new namespaces",
    "unix sockets of the host, unless --allow-unix-socket names them",
)
READABLE_FILES = {
    PROJECT: "the system, toolchains, plain settings, the project",
    READABLE: "everything but the places of secrets; `netsandbox run -v` names those that you have",
    OPEN: "everything but the places of secrets; `netsandbox run -v` names those that you have",
}
WRITABLE = {
    PROJECT: "the project, a private home that is kept for it, {temporary}",
    READABLE: "the working folder, temporary folders and /dev",
    OPEN: "as you may; on a Mac the working and temporary folders",
}
OWN_VARIABLES = ("SANDBOX_MODE", "NETSANDBOX_SESSION", "NETSANDBOX_NAME")
LABEL = 10


def policy_lines(policy: Policy, settings: RunSettings, withheld: Sequence[str]) -> list[str]:
    """The whole policy, readable. *withheld* are variables that the command does not get."""
    ports = policy.default_ports
    lines = labelled("mode", [f"{policy.mode}: {MODES[policy.mode]}"])
    asked = {"names": settings.ask, "files": settings.ask_files}
    lines += labelled(
        "ask", [f"you are asked about other {what}, for {wait} s each" for what, wait in asked.items() if wait]
    )
    lines += labelled("allow", _rules(policy.allow_domains, ports) or ["no name"])
    lines += labelled("deny", _rules(policy.deny_domains, ()) or ["no name besides those always denied"])
    lines += labelled("inspect", _inspected(policy))
    lines += labelled("address", _rules(policy.allow_addresses, ports) or ["no address"])
    lines += labelled("budget", [f"{rule.text:<32} {'bytes':<16} {rule.origin}" for rule in policy.budgets])
    lines += labelled("ports", [f"{_ports(ports)} where an allow rule names none"])
    lines += labelled("unix", policy.allow_unix_sockets)
    lines += labelled("types", [", ".join(policy.allow_query_types)] if policy.allow_query_types else [])
    lines += labelled("dns", [f"{address} port {port}" for address, port in settings.upstream_dns])
    lines += labelled("proxy", [without_password(settings.upstream_proxy)] if settings.upstream_proxy else [])
    lines += labelled("read", _reading(settings.files))
    lines += labelled("write", _writing(settings.files))
    lines += labelled("set", [_set_line(name, value) for name, value in settings.set_env])
    lines += labelled("secret", [f"{text:<49} {origin}" for text, origin in settings.secret_rules])
    lines += labelled("withheld", [", ".join(withheld)] if withheld else [])
    return lines + labelled("always", [f"denied: {what}" for what in ALWAYS_DENIED])


def _inspected(policy: Policy) -> list[str]:
    """The rules for requests that `allow` does not have, and the hosts that are recorded or left alone."""
    found = policy.inspection
    if found is None:
        return []
    return [
        *(f"{rule.text:<32} {'denied':<16} {rule.origin}" for rule in found.deny),
        *(f"{rule.text:<32} {'recorded':<16} {rule.origin}" for rule in found.hosts),
        *(f"{rule.text:<32} {'not inspected':<16} {rule.origin}" for rule in found.excepted),
    ]


def _set_line(name: str, value: str) -> str:
    return (
        f"{name}={value}"
        if name not in OWN_VARIABLES
        else f"{name} is set by netsandbox, so the value {value} is ignored"
    )


def profile_lines(file: FileSettings | None) -> list[str]:
    """The profiles in force, each with the reason why it is used."""
    return labelled("profile", [f"{name}: {why}" for name, why in file.profiles] if file else [])


def profile_json(file: FileSettings | None) -> dict[str, object]:
    return {"profiles": [{"name": name, "why": why} for name, why in file.profiles] if file else []}


def policy_json(policy: Policy, settings: RunSettings, withheld: Sequence[str]) -> dict[str, object]:
    """The same for programs. `ports` is null where a rule covers every port."""
    ports, rules = policy.default_ports, settings.secret_rules
    return {
        "v": 1,
        "mode": policy.mode,
        "ask": settings.ask,
        "ask_files": settings.ask_files,
        "allow_domains": [_rule_json(rule, ports) for rule in policy.allow_domains],
        "deny_domains": [_rule_json(rule, ()) for rule in policy.deny_domains],
        "allow_addresses": [_rule_json(rule, ports) for rule in policy.allow_addresses],
        "budgets": [{"budget": rule.text, "origin": rule.origin} for rule in policy.budgets],
        "default_ports": list(ports),
        "allow_unix_sockets": list(policy.allow_unix_sockets),
        "allow_query_types": list(policy.allow_query_types),
        "upstream_dns": [list(server) for server in settings.upstream_dns],
        "upstream_proxy": without_password(settings.upstream_proxy) if settings.upstream_proxy else None,
        "files": {
            name: [{"path": rule.path, "origin": rule.origin} for rule in value] if isinstance(value, tuple) else value
            for name, value in vars(settings.files).items()
        },
        "set_env": dict(settings.set_env),
        **({"secrets": [{"rule": text, "origin": origin} for text, origin in rules]} if rules else {}),
        "withheld": list(withheld),
        "always_denied": list(ALWAYS_DENIED),
    }


def _reading(files: FileRules) -> list[str]:
    """What the mode shows, then the paths that rules show or hide."""
    shown = [f"{rule.path:<32} {'shown':<16} {rule.origin}" for rule in files.allow_read]
    denied = [f"{rule.path:<32} {'hidden':<16} {rule.origin}" for rule in files.deny_read]
    return [f"{files.mode}: {READABLE_FILES[files.mode]}", *shown, *denied]


def _writing(files: FileRules) -> list[str]:
    project = project_folder() if files.mode == PROJECT else None
    own = [f"{project:<32} {'writable':<16} the project"] if project else []
    listed = [f"{rule.path:<32} {'writable':<16} {rule.origin}" for rule in files.allow_write if files.mode != OPEN]
    copied = (*files.caches, *files.copies) if files.mode == PROJECT else ()
    kept = [f"{rule.path:<32} {'private changes':<16} {rule.origin}" for rule in copied]
    denied = [f"{rule.path:<32} {'read-only':<16} {rule.origin}" for rule in files.deny_write]
    temporary = "the host's temporary folders" if files.share_tmp else "own temporary folders"
    return [WRITABLE[files.mode].format(temporary=temporary), *own, *listed, *kept, *denied]


def labelled(label: str, texts: Iterable[str]) -> list[str]:
    """*texts* as lines: a label before the first, blanks before the rest."""
    return [f"{label if number == 0 else '':<{LABEL}}{text}" for number, text in enumerate(texts)]


def _rules(rules: Iterable[Rule], default: tuple[int, ...]) -> list[str]:
    """*default* is what a rule without ports stands for; () is every port."""
    return [f"{rule.text:<32} {_ports(_effective(rule, default)):<16} {rule.origin}" for rule in rules]


def _effective(rule: Rule, default: tuple[int, ...]) -> tuple[int, ...]:
    return default if rule.ports is None else rule.ports


def _ports(ports: tuple[int, ...]) -> str:
    if not ports:
        return "every port"
    return f"port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports))}"


def without_password(url: str) -> str:
    """What is printed ends up in logs and bug reports; the user and password of a proxy do not belong there."""
    scheme, separator, rest = url.partition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _rule_json(rule: Rule, default: tuple[int, ...]) -> dict[str, object]:
    return {"rule": rule.text, "ports": list(_effective(rule, default)) or None, "origin": rule.origin}
