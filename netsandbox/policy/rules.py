"""From what a caller hands to `Policy` to the rules it keeps.

Rule kept: the wrong type is an error, never an empty list and never a list of letters, because a slip here would either
deny what was wanted or, worse, allow what was not. None is the empty list, which allows nothing (INV-6).
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.policy.patterns import AddressRule, DomainRule, parse_address, parse_domain
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    T = TypeVar("T")

_ANSWERED = ("A", "AAAA", "HTTPS", "SVCB")  # forwarding them would let a session learn real addresses, or keys for ECH


def domains(given: Iterable[str | DomainRule] | None, origin: str, *, deny: bool) -> tuple[DomainRule, ...]:
    """Domain rules, parsed where they were strings."""
    rules = []
    for item in _items(given, origin):
        if isinstance(item, str):
            item = parse_domain(item, origin, deny=deny)  # noqa: PLW2901 (the loop narrows its own variable)
        elif not isinstance(item, DomainRule):
            raise UsageError(f"{origin}: {quoted(repr(item))} is not a rule; give a string such as 'example.com'")
        rules.append(item)
    return tuple(rules)


def addresses(given: Iterable[str | AddressRule] | None) -> tuple[AddressRule, ...]:
    """Address rules, parsed where they were strings."""
    origin = "--allow-address"
    rules = []
    for item in _items(given, origin):
        if isinstance(item, str):
            item = parse_address(item, origin)  # noqa: PLW2901 (the loop narrows its own variable)
        elif not isinstance(item, AddressRule):
            raise UsageError(f"{origin}: {quoted(repr(item))} is not a rule; give a string such as '192.0.2.7:443'")
        rules.append(item)
    return tuple(rules)


def ports(given: Iterable[int] | None, origin: str = "default_ports") -> tuple[int, ...]:
    """The ports that a rule without a port stands for. None at all would read as every port, so one is needed."""
    numbers = tuple(_items(given, origin))
    for number in numbers:
        if type(number) is not int or not 0 < number < 65536:
            raise UsageError(f"{origin}: {quoted(repr(number))} is not a port; write numbers from 1 to 65535")
    if not numbers:
        raise UsageError(f"{origin}: the list is empty; write at least one port, such as 443")
    return numbers


def unix_sockets(given: Iterable[str] | None, origin: str = "--allow-unix-socket") -> tuple[str, ...]:
    """Absolute paths of sockets that the session may use."""
    paths = tuple(_items(given, origin))
    for path in paths:
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path or "/../" in path + "/":
            raise UsageError(f"{origin}: {quoted(str(path))} is not an absolute path; write it in full, without ..")
    return paths


def query_types(given: Iterable[str] | None, origin: str = "allow_query_types") -> tuple[str, ...]:
    """Record types that the resolver may forward besides addresses, each by its one name."""
    types = []
    for item in _items(given, origin):
        from netsandbox.policy.query_types import canonical_type  # a list that most command lines never need

        name = canonical_type(item) if isinstance(item, str) else None
        if name is None:
            raise UsageError(f"{origin}: {quoted(str(item))} is no record type; write one such as TXT, MX or TYPE99")
        if name in _ANSWERED:
            raise UsageError(f"{origin}: {name} is answered by the session's own resolver in any case; leave it out")
        types.append(name)
    return tuple(types)


def _items(given: Iterable[T] | None, origin: str) -> Iterable[T]:
    if given is None:
        return ()
    if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__iter__"):
        raise UsageError(f"{origin}: {quoted(repr(given))} is not a list; write it as a list of rules")
    return given
