"""The secrets of a session from options, files and profiles: which of them apply, their values, and what to print.

A secret that a profile offers (`optional`) applies if it has a value, if the policy allows one of its hosts, and where
inspection works; otherwise its variable is treated as any other. The value of any other secret must be there.
"""

from __future__ import annotations

import os

from netsandbox.cli.run_options import policy_of
from netsandbox.errors import UsageError
from netsandbox.frozen import copy_with
from netsandbox.policy.names import canonical
from netsandbox.policy.rules import parse_domain
from netsandbox.policy.secret_rules import HTTPS, SecretRule, covers, parse_secret
from netsandbox.policy.variables import VariableRules
from netsandbox.policy.verdict import TCP, Request
from netsandbox.text import quoted, shell_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.policy import DomainRule, Policy
    from netsandbox.runtime.option_parser import Parsed
    from netsandbox.runtime.session_secrets import SessionSecrets
    from netsandbox.settings import RunSettings


def session_secrets(
    parsed: Parsed, file: FileSettings | None, settings: RunSettings
) -> tuple[SessionSecrets | None, list[str]]:
    """The secrets with their values, None if none applies; and lines for the user."""
    policy = policy_of(parsed, file)
    named = (_with_registries(parse_secret(text, origin), file) for text, origin in settings.secret_rules)
    rules = [copy_with(rule, hosts=_at_ruled_ports(rule.hosts, policy)) for rule in named]
    hosts = _HostRules(policy, _excepted(parsed, file), asks=settings.ask is not None)
    fixed = [hosts.checked(rule) for rule in rules if not rule.is_optional]
    names = {rule.name for rule in fixed}
    offers = [hosts.reachable(rule) for rule in rules if rule.is_optional and rule.name not in names]
    offers = [rule for rule in offers if rule.hosts and not any(name in os.environ for name in rule.unless)]
    if not fixed and not offers:
        return None, []
    missing = _missing_engine()
    if missing and fixed:  # before a value is read, or a command run
        raise UsageError(missing)
    if missing:
        return None, _missing_lines(offers, settings, missing)
    from netsandbox.session.secret_values import read_secrets

    return read_secrets([*fixed, *offers], find_program), [hosts.line(rule) for rule in fixed if not hosts.opens(rule)]


def find_program(name: str) -> tuple[str, Mapping[str, str]]:
    """The program of a command and its variables. It runs outside of every session, so one that a session may have
    written is refused, and of a name in PATH the next one is taken; the project's folders are no part of that PATH."""
    from netsandbox.config.registries.discovery import Discovery
    from netsandbox.paths import home, working_folder

    discovery = Discovery(working_folder() or "/", os.environ, home())
    variables = {**os.environ, "PATH": discovery.tool_environment()["PATH"]}
    if "/" in name:
        path = os.path.join(home(), name)
        if not os.path.exists(path):  # a session could put one there before it is run
            raise UsageError(f"no program is at {quoted(path)}; check its path")
        found = path if discovery.trusts_program(path) else None
    else:
        found = discovery.trusted_program(name)
    if found is not None:
        return found, variables
    if discovery.untrusted_places:
        place = shell_quoted(discovery.untrusted_places[0])
        raise UsageError(f"a session may have written the program {quoted(name)}; run `netsandbox trust {place}`")
    raise UsageError(f"no program {quoted(name)} is in PATH outside of the project; install it, or write its path")


def _with_registries(rule: SecretRule, file: FileSettings | None) -> SecretRule:
    """The hosts of the rule, and those that its tools name."""
    origins = tuple(f"{tool} (" for tool in rule.registries)
    named = [each for each in (file.allow_domains if file and origins else ()) if each.origin.startswith(origins)]
    return copy_with(rule, hosts=(*rule.hosts, *named)) if named else rule


def _at_ruled_ports(hosts: tuple[DomainRule, ...], policy: Policy) -> tuple[DomainRule, ...]:
    """A host without a port is meant at the ports that its rules name."""
    from netsandbox.policy.inspection import ruled_ports

    found: list[DomainRule] = []
    for host in hosts:
        ports = ruled_ports(host, policy.allow_domains)
        found += [parse_domain(f"{host.text}:{port}", host.origin) for port in ports] or [host]
    return tuple(found)


def _excepted(parsed: Parsed, file: FileSettings | None) -> list[DomainRule]:
    given = [
        *(file.inspect_except if file else ()),
        *((text, "--inspect-except") for text in parsed.all("inspect-except")),
    ]
    return [parse_domain(text, origin, deny=True) for text, origin in given]


class _HostRules:
    """Which hosts of a secret can be reached, and are inspected."""

    def __init__(self, policy: Policy, excepted: Sequence[DomainRule], *, asks: bool) -> None:
        self._policy = policy
        self._excepted = excepted
        self._asks = asks

    def checked(self, rule: SecretRule) -> SecretRule:
        """`UsageError` for a host that is never inspected."""
        for host in rule.hosts:
            if self._is_excepted(host):
                raise UsageError(
                    f"{rule.origin}: {host.text!a} is not inspected, so it gets no secret; leave --inspect-except out"
                )
        return rule

    def reachable(self, rule: SecretRule) -> SecretRule:
        """The rule with those of its hosts that the session reaches and inspects."""
        hosts = tuple(host for host in rule.hosts if self._is_allowed(host) and not self._is_excepted(host))
        return copy_with(rule, hosts=hosts)

    def opens(self, rule: SecretRule) -> bool:
        return any(map(self._is_allowed, rule.hosts))

    def line(self, rule: SecretRule) -> str:
        host = rule.hosts[0].text if rule.hosts else "a registry"
        return f"no rule allows {host}, so {rule.name} is of no use; allow it with --allow-domain {host}"

    def _is_excepted(self, host: DomainRule) -> bool:
        return any(covers(each, host.name, (host.ports or (HTTPS,))[0]) for each in self._excepted)

    def _is_allowed(self, host: DomainRule) -> bool:
        """A pattern has no single answer, nor has a session that asks."""
        if self._asks or host.below:
            return True
        return self._policy.decide(Request(canonical(host.name), (host.ports or (HTTPS,))[0], TCP)).allowed


def _missing_engine() -> str:
    """Why inspection does not work here; empty if it does."""
    from netsandbox.session.inspection import import_folders

    try:
        import_folders()
    except UsageError as error:
        return str(error)
    return ""


def _missing_lines(offered: Iterable[SecretRule], settings: RunSettings, missing: str) -> list[str]:
    """One line, if the command gets any of the values."""
    from netsandbox_proxy.inspect.installed import INSTALL

    variables = VariableRules(settings.variables)
    names = [
        rule.name
        for rule in offered
        if rule.name in os.environ
        and variables.passes(rule.name.encode("ascii"), os.environb[rule.name.encode("ascii")])
    ]
    if not names or INSTALL not in missing:
        return []
    return [f"the command gets {', '.join(dict.fromkeys(names))}; to keep the value outside run {INSTALL}"]
