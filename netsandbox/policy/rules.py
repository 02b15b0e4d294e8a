"""Rules: what people write, and what a caller hands to `Policy`, checked and parsed. Pure.

Rules kept:

1. A text that is not plainly one rule is refused with a line that names what to write instead: a typing slip must
   never open a door.
2. The wrong type is an error, never an empty list and never a list of letters: such a slip would deny what was wanted
   or allow what was not. None is the empty list, which allows nothing (INV-6).
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.policy.ip import BITS, Address, parse, parse6, unmapped
from netsandbox.policy.names import BadName, canonical, is_plain
from netsandbox.policy.policy import AddressRule, DomainRule
from netsandbox.text import join_host_port, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn, TypeVar

    T = TypeVar("T")

ANY_PORT: tuple[int, ...] = ()
_ports_read = {"*": ANY_PORT}  # rules share their ports: a long list repeats a few
_suffix_tests: list[Callable[[str], bool]] = []  # loaded at the first wildcard, which most command lines do not have
_EXCEPT = " except "
_SCHEMES = {"http": 80, "https": 443}
_SHORTEST_PREFIX = {4: 8, 6: 7}  # a shorter one is no network but a large part of the world
_IPV6_ADDRESS, _IPV6_NETWORK = "[2001:db8::1]:443", "[2001:db8::/32]:443"
_RULES_OF_PYTHON = (
    *("allow_domains", "deny_domains", "allow_addresses"),
    *("allow_http", "deny_http", "inspect", "inspect_except", "secrets", "budgets"),
)
_PARAMETERS = {
    **{"--online": 'mode="online"', "--offline": 'mode="offline"'},
    **{"--deny-domain": "deny_domains", "--inspect-except": "inspect_except"},
}
_ANSWERED = ("A", "AAAA", "HTTPS", "SVCB")  # forwarding them would let a session learn real addresses, or keys for ECH


def domains(given: Iterable[str | DomainRule] | None, origin: str, *, deny: bool) -> tuple[DomainRule, ...]:
    """Domain rules, parsed where they were strings."""
    found = []
    for item in items(given, origin):
        if type(item) is str and is_plain(item):  # the same as by `parse_domain`, and shorter: lists can be long
            item = DomainRule(item, origin, item, None, apex=True, below=False)  # noqa: PLW2901
        elif isinstance(item, str):
            item = parse_domain(item, origin, deny=deny)  # noqa: PLW2901 (the loop narrows its own variable)
        elif not isinstance(item, DomainRule):
            raise UsageError(f"{origin}: {quoted(repr(item))} is not a rule; give a string such as 'example.com'")
        found.append(item)
    return tuple(found)


def addresses(given: Iterable[str | AddressRule] | None, origin: str) -> tuple[AddressRule, ...]:
    """Address rules, parsed where they were strings."""
    found = []
    for item in items(given, origin):
        if isinstance(item, str):
            item = parse_address(item, origin)  # noqa: PLW2901 (the loop narrows its own variable)
        elif not isinstance(item, AddressRule):
            raise UsageError(f"{origin}: {quoted(repr(item))} is not a rule; give a string such as '192.0.2.7:443'")
        found.append(item)
    return tuple(found)


def ports(given: Iterable[int] | None, origin: str = "default_ports") -> tuple[int, ...]:
    """The ports that a rule without a port stands for. None at all would read as every port, so one is needed."""
    numbers = tuple(items(given, origin))
    for number in numbers:
        if type(number) is not int or not 0 < number < 65536:
            raise UsageError(f"{origin}: {quoted(repr(number))} is not a port; write numbers from 1 to 65535")
    if not numbers:
        raise UsageError(f"{origin}: the list is empty; write at least one port, such as 443")
    return numbers


def unix_sockets(given: Iterable[str] | None, origin: str = "--allow-unix-socket") -> tuple[str, ...]:
    """Absolute paths of sockets that the session may use."""
    paths = tuple(items(given, origin))
    for path in paths:
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path or "/../" in path + "/":
            raise UsageError(f"{origin}: {quoted(str(path))} is not an absolute path; write it in full, without ..")
    return paths


def query_types(given: Iterable[str] | None, origin: str = "--allow-query-type") -> tuple[str, ...]:
    """Record types that the resolver may forward besides addresses, each by its one name."""
    types = []
    for item in items(given, origin):
        from netsandbox.policy.query_types import canonical_type  # a list that most command lines never need

        name = canonical_type(item) if isinstance(item, str) else None
        if name is None:
            raise UsageError(f"{origin}: {quoted(str(item))} is not a record type; write one such as TXT, MX or TYPE99")
        if name in _ANSWERED:
            raise UsageError(f"{origin}: {name} is answered by the session's own resolver in any case; leave it out")
        types.append(name)
    return tuple(types)


def items(given: Iterable[T] | None, origin: str) -> Iterable[T]:
    """What a program gave as a list of rules. One string is none: its letters would be taken for rules."""
    if given is None:
        return ()
    if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__iter__"):
        text = given if isinstance(given, str) else repr(given)
        raise UsageError(f"{origin}: {quoted(text)} is not a list; write it as a list of rules")
    return given


def parse_domain(text: str, origin: str, *, deny: bool = False) -> DomainRule:
    """Read `example.com`, `*.example.com`, `**.example.com`, any of them with `:PORT` or `:*`, or an http(s) URL.

    With *deny*, wildcards may stand over a whole top-level domain: refusing too much opens nothing. And there may be
    exceptions: `**.example.com except www.example.com, api.example.com:443`.
    """
    if _EXCEPT in text:
        return _parse_exceptions(text, origin, deny=deny)
    pattern, ports = _split_url(text, origin) if ":/" in text else _split_port(text, origin)
    wildcard = "*." if pattern[:2] == "*." else "**." if pattern[:3] == "**." else ""
    name = pattern[len(wildcard) :]
    if not is_plain(name):
        _check_wildcards(pattern, name, text, origin, deny=deny)
        name = _canonical_name(name, ports, text, origin)
    if wildcard and not deny and _is_shared(name):
        refuse(origin, text, f"covers everybody's names under {name}", "name the domains one by one")
    return DomainRule(text, origin, name, ports, apex=wildcard != "*.", below=bool(wildcard))


def _parse_exceptions(text: str, origin: str, *, deny: bool) -> DomainRule:
    pattern, _, listed = text.partition(_EXCEPT)
    instead = as_written("--deny-domain", origin)
    if not deny:
        refuse(origin, text, "has an exception, and only a deny rule can have one", f"deny the name with {instead}")
    if _EXCEPT in listed:
        refuse(origin, text, "says except twice", "write the exceptions as a list: except NAME, NAME")
    rule = parse_domain(pattern.strip(), origin, deny=True)
    exceptions = []
    for item in listed.split(","):
        found = parse_domain(item.strip(), origin, deny=True)
        each = DomainRule(
            found.text, origin, found.name, found.ports or rule.ports or (), apex=found.apex, below=found.below
        )
        if not _lies_in(each, rule):
            refuse(origin, text, f"excepts {each.text}, which it does not deny", f"name a part of {rule.text}")
        if _lies_in(rule, each):
            refuse(origin, text, "excepts all that it denies", "leave the rule out")
        exceptions.append(each)
    return DomainRule(
        text, origin, rule.name, rule.ports, apex=rule.apex, below=rule.below, exceptions=tuple(exceptions)
    )


def _lies_in(inner: DomainRule, outer: DomainRule) -> bool:
    """Whether *outer* covers every name and port of *inner*; no ports are every port."""
    names = [inner.name] * inner.apex + [f"*.{inner.name}"] * inner.below
    ports = not outer.ports or bool(inner.ports and {*inner.ports} <= {*outer.ports})
    return ports and all(map(outer.covers, names))


def parse_address(text: str, origin: str) -> AddressRule:
    """Read `ADDRESS[/LENGTH][:PORT]`, IPv6 with a port in brackets: `[2001:db8::/32]:443`."""
    network, ports = _split_address(text, origin)
    literal, slash, length_text = network.partition("/")
    address = parse(literal)
    if address is None:
        refuse(origin, text, "is not an address", f"write {_like(text)}")
    bits = BITS[address.version]
    length = _number(length_text, 0, bits) if slash else bits
    if length is None:
        refuse(origin, text, f"has a bad prefix length {quoted(length_text)}", f"write /0 to /{bits}")
    if address.value & ((1 << (bits - length)) - 1):
        base = Address(address.version, address.value >> (bits - length) << (bits - length))
        refuse(origin, text, f"has host bits set below /{length}", f"write {base.text}/{length} or {address.text}")
    if unmapped(address) is not address and length >= 96:
        address, length = unmapped(address), length - 96
    if length < _SHORTEST_PREFIX[address.version]:
        refuse(
            origin,
            text,
            "covers a large part of the internet",
            f"use {as_written('--online', origin)} to allow everything",
        )
    return AddressRule(text, origin, address, length, ports)


def _like(text: str) -> str:
    """Examples for what is not an address. Networks only for who meant one, since some options take one address."""
    if "/" in text:
        return f"192.0.2.0/24, 192.0.2.0/24:5432 or {_IPV6_NETWORK}"
    return f"192.0.2.7, 192.0.2.7:5432 or {_IPV6_ADDRESS}"


def read_port(text: str) -> int | None:
    """A port in plain decimal, 1 to 65535 without sign, space or leading zero; else None."""
    return _number(text, 1, 65535)


def _number(text: str, least: int, most: int) -> int | None:
    if not text.isascii() or not text.isdigit() or len(text) > 5 or (text[0] == "0" and text != "0"):
        return None
    value = int(text)
    return value if least <= value <= most else None


def _ports(port: str, text: str, origin: str) -> tuple[int, ...]:
    ports = _ports_read.get(port)
    if ports is not None:
        return ports
    number = read_port(port)
    if number is None:
        refuse(origin, text, f"has a bad port {quoted(port)}", "write a port from 1 to 65535, or * for every port")
    return _ports_read.setdefault(port, (number,))


def _canonical_name(name: str, ports: tuple[int, ...] | None, text: str, origin: str) -> str:
    try:
        host = canonical(name)
    except BadName as error:
        advice = "write a host name such as example.com or *.example.com"
        if "/" in name:
            advice = "a rule has no path: write the host alone, such as example.com"
        elif "," in name:
            advice = "a rule has one name: repeat the option, or write a list in a file"
        refuse(origin, text, f"names no host ({error})", advice)
    if host.address is not None:
        advice = f"use --allow-address {_authority(host.address, ports)}"
        from netsandbox.policy.address_guard import LOOPBACK, guarded

        if guarded(host.address) == LOOPBACK:
            advice = "to reach a port of this machine use --connect-host PORT"
        refuse(origin, text, "is an address, not a name", advice)
    return host.text


def _split_port(text: str, origin: str) -> tuple[str, tuple[int, ...] | None]:
    """A domain pattern and its ports."""
    if text.startswith("["):
        inside, bracket, rest = text[1:].partition("]")
        if bracket and "*" not in inside and (not rest or rest[0] == ":"):
            return text[: len(inside) + 2], _ports(rest[1:], text, origin) if rest else None
    name, colon, port = text.partition(":")
    if ":" in port:
        refuse(origin, text, "is ambiguous", "for an IPv6 address use --allow-address, with brackets before a port")
    return name, _ports(port, text, origin) if colon else None


def _split_url(text: str, origin: str) -> tuple[str, tuple[int, ...] | None]:
    """The host of an http(s) URL and its port; the path says nothing about the network and is dropped."""
    scheme, separator, rest = text.partition("://")
    port = _SCHEMES.get(scheme.lower())
    if not separator or port is None:
        refuse(origin, text, "is not an http or https URL", "write the host, such as example.com:443")
    if "\\" in text or not text.isprintable() or " " in text:
        refuse(origin, text, "has characters that no URL has", "write the host, such as example.com")
    authority = rest.partition("#")[0].partition("?")[0].partition("/")[0]
    if "@" in authority:
        refuse(origin, text, "carries a user name", "write only the host after the @")
    if "*" in authority:
        refuse(origin, text, "has a wildcard inside a URL", "write the pattern alone, such as *.example.com:443")
    host, ports = _split_port(authority, origin)
    return host, (port,) if ports is None else ports


def _check_wildcards(pattern: str, name: str, text: str, origin: str, *, deny: bool) -> None:
    """Refuse a pattern for every name, and a *name* with a wildcard left in it."""
    if pattern.strip("*.[]?") == "" and pattern.strip("."):
        mode, verb = ("--offline", "deny") if deny else ("--online", "allow")
        refuse(origin, text, "matches every name", f"use {as_written(mode, origin)} to {verb} everything")
    if "*" in name or "?" in name:
        what = "has a wildcard that is not its whole first label"
        refuse(origin, text, what, "write *.example.com or **.example.com")


def _split_address(text: str, origin: str) -> tuple[str, tuple[int, ...] | None]:
    """An address or CIDR and its ports."""
    if text.startswith("["):
        network, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and rest[0] != ":") or ":" not in network:
            example = _IPV6_NETWORK if "/" in network else _IPV6_ADDRESS
            refuse(origin, text, "has misplaced brackets", f"write {example}")
        return network, _ports(rest[1:], text, origin) if rest else None
    if text.count(":") > 1:
        front, _, back = text.rpartition(":")
        if "/" in front or (read_port(back) is not None and parse6(front) is not None):
            refuse(origin, text, "may or may not end in a port", f"write [{front}]:{back} or [{text}]")
        return text, None
    network, colon, port = text.partition(":")
    return network, _ports(port, text, origin) if colon else None


def _authority(address: Address, ports: tuple[int, ...] | None) -> str:
    if ports is None:
        return f"[{address.text}]" if address.version == 6 else address.text
    return join_host_port(address.text, ports[0] if ports else "*")


def as_written(option: str, origin: str) -> str:
    """*option* as the reader of an error writes it, who may have written the rule in Python."""
    return _PARAMETERS[option] if origin in _RULES_OF_PYTHON else option


def refuse(origin: str, text: str, what: str, instead: str) -> NoReturn:
    """`UsageError` for a rule: where it is written, what is wrong with it, and what to write."""
    raise UsageError(f"{origin}: {quoted(text)} {what}; {instead}")


def _is_shared(name: str) -> bool:
    if not _suffix_tests:
        from netsandbox.policy.name_lists import is_shared_suffix

        _suffix_tests.append(is_shared_suffix)
    return _suffix_tests[0](name)
