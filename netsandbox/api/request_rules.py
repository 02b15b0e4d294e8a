"""Rules for requests and secrets from Python, with the texts of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from netsandbox.errors import UsageError
from netsandbox.policy.inspection import Inspection, inspection, parse_host
from netsandbox.policy.policy import Policy
from netsandbox.policy.rules import items
from netsandbox.policy.secret_rules import HTTPS, SecretRule, parse_secret
from netsandbox.runtime.session_secrets import inspected_hosts


def request_rules(
    *,
    allow_http: Iterable[str] = (),
    deny_http: Iterable[str] = (),
    inspect: Iterable[str] = (),
    inspect_except: Iterable[str] = (),
    record_query: bool = False,
) -> Inspection | None:
    """Rules for `Policy(inspection=…)`: `GET,HEAD https://api.example.com/v1/**` for requests, and hosts whose requests
    are recorded. A host of *allow_http* can be reached without a rule of its own."""

    def given(name: str, texts: Iterable[str]) -> list[tuple[str, str]]:
        return [(text, name) for text in items(texts, name)]

    return inspection(
        given("allow_http", allow_http),
        given("deny_http", deny_http),
        given("inspect", inspect),
        given("inspect_except", inspect_except),
        records_query=record_query,
    )


def with_secrets(policy: Policy, texts: Iterable[str]) -> tuple[Policy, tuple[tuple[str, str], ...]]:
    """The policy with the hosts of the secrets inspected, and the rules for `RunSettings`. Values are read when a
    command starts, and not in this process."""
    rules = [_checked(parse_secret(text, "secrets"), policy.inspection) for text in items(texts, "secrets")]
    if not rules:
        return policy, ()
    hosts = tuple(parse_host(text, origin) for text, origin in inspected_hosts(rules))
    old = policy.inspection or Inspection(default_ports=policy.default_ports)
    made = copy(policy)
    made.inspection = Inspection(
        old.allow, old.deny, (*old.hosts, *hosts), old.excepted, old.default_ports, records_query=old.records_query
    )
    return made, tuple((rule.text, rule.origin) for rule in rules)


def _checked(rule: SecretRule, rules: Inspection | None) -> SecretRule:
    if rule.source[0] == "command":
        raise UsageError(f"secrets: {rule.text!a} names a command; run it in your program, and set a variable")
    if rule.registries or rule.unless:
        raise UsageError(
            f"secrets: {rule.text!a} uses registry= or unless=, which only profiles support; name the hosts"
        )
    for host in rule.hosts:
        if rules is not None and rules.excepts(host.name, (host.ports or (HTTPS,))[0]):
            raise UsageError(f"secrets: {host.text!a} is not inspected, so it gets no secret; leave inspect_except out")
    return rule
