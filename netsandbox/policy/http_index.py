"""Finds the rules for requests that cover a host, a port and a path, among many thousands. Pure.

A rule is kept under its name and, where its pattern begins with plain text, under the first segment of its path, in
small letters, since rules that deny ignore their case. A request looks at the rules of its own name and of the names
above it, with its own first segment or none. The order of the rules is kept, since the first one that matches is the
one that a record names.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from netsandbox.policy.http_rules import HttpRule

    Node = dict[str | None, list[tuple[int, HttpRule]]]  # by first segment; None: a pattern that begins with a wildcard


class HttpRuleIndex:
    """Rules by name: those for the name itself, and those for every name below it."""

    __slots__ = ("_below", "_exact")

    def __init__(self, rules: Iterable[HttpRule]) -> None:
        self._exact: dict[str, Node] = {}
        self._below: dict[str, Node] = {}
        for number, rule in enumerate(rules):
            domain, first = rule.domain, rule.glob.segments[0].lower()
            key = None if "*" in first else first
            for nodes, belongs in ((self._exact, domain.apex), (self._below, domain.below)):
                if belongs:
                    nodes.setdefault(domain.name, {}).setdefault(key, []).append((number, rule))

    def covers(self, host: str, port: int) -> bool:
        """Whether any rule is about *host* and *port*."""
        return next(self._at(host, port, None), None) is not None

    def rules(self, host: str, port: int, path: str | None = None) -> list[HttpRule]:
        """The rules about *host* and *port*, in their order; with *path* those alone that could match it."""
        return [rule for _, rule in sorted(self._at(host, port, path), key=lambda found: found[0])]

    def _at(self, host: str, port: int, path: str | None) -> Iterator[tuple[int, HttpRule]]:
        for node in self._nodes(host):
            lists = node.values() if path is None else (node.get(path.split("/", 2)[1].lower(), ()), node.get(None, ()))
            for found in lists:
                for number, rule in found:
                    if not rule.domain.ports or port in rule.domain.ports:
                        yield number, rule

    def _nodes(self, host: str) -> Iterator[Node]:
        if host in self._exact:
            yield self._exact[host]
        dot = host.find(".")
        while dot >= 0:
            node = self._below.get(host[dot + 1 :])
            if node is not None:
                yield node
            dot = host.find(".", dot + 1)
