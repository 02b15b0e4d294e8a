"""Domain rules that contradict each other: a rule that allows only what deny rules close. Pure.

A deny always wins, so such a rule opens nothing, and its author should know. A deny that closes a part of what a rule
allows is no contradiction: `*.example.com` without `ads.example.com` is what denies are for.
"""

from __future__ import annotations

from netsandbox.policy.trie import EVERY_PORT, NameTrie

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.policy.policy import DomainRule, Policy

ANY_LABEL = "*."  # no name has it, so only a rule for every name below a domain covers it


def overruled(policy: Policy) -> list[tuple[DomainRule, DomainRule]]:
    """Each rule that opens nothing, with a deny rule that closes it."""
    concerned = {name for rule in policy.allow_domains for name in _and_above(rule.name)}
    denies = NameTrie((rule for rule in policy.deny_domains if rule.name in concerned), ())  # a block list is long
    found = []
    for allow in policy.allow_domains:
        names = [allow.name] * allow.apex + [ANY_LABEL + allow.name] * allow.below
        ports = (policy.default_ports if allow.ports is None else allow.ports) or (EVERY_PORT,)
        closing = [denies.match(name, port) for name in names for port in ports]
        if all(rule and not (allow.below and rule.exceptions) for rule in closing) and closing[0] is not None:
            found.append((allow, closing[0]))
    return found


def _and_above(name: str) -> Iterator[str]:
    """*name* and the domains that it lies in."""
    yield name
    while "." in name:
        name = name.partition(".")[2]
        yield name
