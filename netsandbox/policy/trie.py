"""Finding the rule for a name or an address.

`NameTrie` is a trie over reversed labels kept flat: a node is its own path (the suffix of labels down to it), so the
walk from the leaf to the root is one dictionary lookup a label, and a rule costs one entry to load.
Matching is label by label because only whole suffixes are ever looked up. `AddressTable` is the same idea with bits.
Rules that cover the same node are kept by their ports, so that many rules for one host stay one lookup too.
The few rules with exceptions are kept apart: an exception lifts its own rule, so each of them is looked at alone.
"""

from __future__ import annotations

from netsandbox.policy.ip import BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from netsandbox.policy.ip import Address
    from netsandbox.policy.policy import AddressRule, DomainRule

    Ports = tuple[int, ...] | None
    DomainBucket: TypeAlias = DomainRule | dict[Ports, DomainRule]

# Arguments of `match` in place of a port.
SOME_PORT = -1  # is there a port that a rule covers?
EVERY_PORT = 0  # is there a rule that covers every port?


class NameTrie:
    """Domain rules by name. *bare* are the ports of a rule without ports; () is every port."""

    __slots__ = ("_bare", "_below", "_exact", "_excepting")

    def __init__(self, rules: Iterable[DomainRule], bare: tuple[int, ...]) -> None:
        self._bare = bare
        self._exact: dict[str, DomainBucket] = {}
        self._below: dict[str, DomainBucket] = {}
        self._excepting: dict[str, list[DomainRule]] = {}
        exact, below = self._exact, self._below
        for rule in rules:
            if rule.exceptions:
                self._excepting.setdefault(rule.name, []).append(rule)
                continue
            if rule.apex and exact.setdefault(rule.name, rule) is not rule:
                _share(exact, rule)
            if rule.below and below.setdefault(rule.name, rule) is not rule:
                _share(below, rule)

    def match(self, name: str, port: int) -> DomainRule | None:
        """The closest rule that covers *name* and *port*: the name's own, else that of the nearest parent; a rule with
        exceptions only if there is no other."""
        bucket = self._exact.get(name)
        if bucket is not None:
            rule = self._covering(bucket, port)
            if rule is not None:
                return rule
        below = self._below
        dot = name.find(".") if below else -1
        while dot >= 0:
            bucket = below.get(name[dot + 1 :])
            if bucket is not None:
                rule = self._covering(bucket, port)
                if rule is not None:
                    return rule
            dot = name.find(".", dot + 1)
        return self._match_excepting(name, port) if self._excepting else None

    def _match_excepting(self, name: str, port: int) -> DomainRule | None:
        start = 0
        while start >= 0:
            for rule in self._excepting.get(name[start:], ()):
                if rule.covers(name) and self._covering(rule, port) and not _is_excepted(rule, name, port):
                    return rule
            start = name.find(".", start) + 1 or -1
        return None

    def _covering(self, bucket: DomainBucket, port: int) -> DomainRule | None:
        if not isinstance(bucket, dict):
            ports = self._bare if bucket.ports is None else bucket.ports
            return bucket if port == SOME_PORT or not ports or port in ports else None
        if port == SOME_PORT:
            return next(iter(bucket.values()))
        rule = bucket.get((port,)) or bucket.get(())
        if rule is None and (not self._bare or port in self._bare):
            rule = bucket.get(None)
        return rule


def _is_excepted(rule: DomainRule, name: str, port: int) -> bool:
    """A rule that excepts one port of *name* does not cover every port of it."""
    return any(
        each.covers(name) and (not each.ports or port == EVERY_PORT or port in each.ports) for each in rule.exceptions
    )


def _share(nodes: dict[str, DomainBucket], rule: DomainRule) -> None:
    """Add *rule* to a node that has one already; of two equal rules the first keeps the node."""
    present = nodes[rule.name]
    if not isinstance(present, dict):
        present = nodes[rule.name] = {present.ports: present}
    present.setdefault(rule.ports, rule)


class AddressTable:
    """Address rules by network. A rule without a port stands for the *bare* ports."""

    __slots__ = ("_bare", "_lengths")

    def __init__(self, rules: Iterable[AddressRule], bare: tuple[int, ...]) -> None:
        self._bare = bare
        self._lengths: dict[tuple[int, int], dict[int, dict[Ports, AddressRule]]] = {}
        for rule in sorted(rules, key=lambda rule: -rule.length):
            version = rule.network.version
            networks = self._lengths.setdefault((version, rule.length), {})
            prefix = rule.network.value >> (BITS[version] - rule.length)
            networks.setdefault(prefix, {}).setdefault(rule.ports, rule)

    def match(self, address: Address, port: int, *, exact: bool = False) -> AddressRule | None:
        """The narrowest rule that covers *address* and *port*; with *exact* only one that names this very address."""
        bits = BITS[address.version]
        for (version, length), networks in self._lengths.items():
            if version != address.version or (exact and length != bits):
                continue
            bucket = networks.get(address.value >> (bits - length))
            if bucket is None:
                continue
            rule = bucket.get((port,)) or bucket.get(())
            if rule is None and port in self._bare:
                rule = bucket.get(None)
            if rule is not None:
                return rule
        return None
