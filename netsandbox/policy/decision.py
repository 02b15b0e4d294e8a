"""The decision: may this host be reached, or resolved? Pure: no I/O, no clock, no state that changes.

A `Decision` is built from a `Policy` for the first request, which comes after exec: the tables of a hundred thousand
rules take longer than a launch may. Rules kept, in this order:

1. Deny rules and known DNS-over-HTTPS endpoints are denied in every mode, even if another rule allows them. An
   exception of a deny rule lifts that rule and no other (INV-6).
2. The host's loopback is opened by an address rule alone.
3. In the modes offline and localhost everything else is denied. A policy that allows nothing and names no mode is
   offline.
4. An address needs an address rule (online: it must not be guarded). A name needs a domain rule (online: no rule).
5. After the lookup every address is checked again by `check_address`, literals too (INV-4).
"""

from __future__ import annotations

from netsandbox.policy import address_guard, name_lists, reasons
from netsandbox.policy.ip import Address, unmapped
from netsandbox.policy.names import Host
from netsandbox.policy.policy import CLOSED, ONLINE, Policy
from netsandbox.policy.trie import EVERY_PORT, SOME_PORT, AddressTable, NameTrie
from netsandbox.policy.verdict import DNS, TCP, UDP, Request, Verdict, verdict
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_LOOPBACK_NAMES = frozenset(
    """
    localhost localhost4 localhost6 ip6-localhost ip6-loopback localhost.localdomain
    localhost4.localdomain4 localhost6.localdomain6
    """.split()  # noqa: SIM905 (a literal would take a line a name)
)
_LOOPBACK = (Address(4, 0x7F000001), Address(6, 1))


class Decision:
    """The tables of one policy, and the decisions that follow from them."""

    __slots__ = ("_addresses", "_allow", "_closed", "_deny", "_origin", "mode")

    def __init__(self, policy: Policy) -> None:
        self.mode = policy.mode
        self._allow = NameTrie(policy.allow_domains, policy.default_ports)
        self._deny = NameTrie(policy.deny_domains, ())
        self._addresses = AddressTable(policy.allow_addresses, policy.default_ports)
        self._closed = self.mode in CLOSED
        self._origin = policy.mode_origin or None

    def decide(self, request: Request) -> Verdict:
        """The one decision behind every door (INV-3)."""
        host, port, kind = request.host, request.port, request.kind
        if kind == DNS:
            return self.resolve(host)
        if type(port) is not int or not 0 < port < 65536:
            return verdict(reasons.BAD_PORT, host.text, 0)
        if kind == TCP:
            return self._reach(host, port)
        if kind != UDP:
            return verdict(reasons.INTERNAL, host.text, port)
        answer = self._reach(host, port)
        return verdict(reasons.UDP, host.text, port) if answer.allowed else answer  # no door carries it

    def check_address(self, host: Host, address: Address, port: int, own: Collection[Address] = ()) -> Verdict:
        """Check one address that an allowed *host* resolved to (or is), before it is dialled (INV-4).

        *own* holds the host's own addresses as they are now.
        """
        address = unmapped(address)
        if self._closed:
            return verdict(reasons.OFFLINE, host.text, port, origin=self._origin, address=address.text)
        if name_lists.is_resolver_address(address) and self._addresses.match(address, port) is None:
            return verdict(reasons.DOH_ENDPOINT, host.text, port, address=address.text)
        return self._check_rules(host.text, address, port, own, reasons.ONLINE if self.mode == ONLINE else reasons.RULE)

    def denies_name(self, host: Host, port: int = EVERY_PORT) -> Verdict | None:
        """The denial by a deny rule or the list of DoH endpoints, else None; for every link of a CNAME chain."""
        name = host.text
        rule = self._deny.match(name, port)
        if rule is not None:
            return verdict(reasons.DENY_RULE, name, port, rule=rule.text, origin=rule.origin)
        if name_lists.is_resolver(name):
            return verdict(reasons.DOH_ENDPOINT, name, port)
        return None

    def resolve(self, host: Host) -> Verdict:
        """`decide` for a request of kind DNS, which the resolver makes for every new name."""
        name = host.text
        if host.address is not None:
            return verdict(reasons.ADDRESS_LITERAL, name, 0, address=name)
        denied = self.denies_name(host)
        if denied is not None:
            return denied
        if is_loopback_name(name):
            return verdict(reasons.LOOPBACK, name, 0, allowed=True)
        if self._closed:
            return verdict(reasons.OFFLINE, name, 0, origin=self._origin)
        allowed = self._by_rule(name, SOME_PORT, 0)
        if allowed is not None:
            return allowed
        if self.mode == ONLINE:
            return verdict(reasons.ONLINE, name, 0, allowed=True)
        return verdict(reasons.NOT_ALLOWED, name, 0)

    def _reach(self, host: Host, port: int) -> Verdict:
        name = host.text
        if host.address is not None:
            return self._reach_address(name, host.address, port)
        denied = self.denies_name(host, port)
        if denied is not None:
            return denied
        if is_loopback_name(name):
            return self._reach_loopback(name, port)
        if self._closed:
            return verdict(reasons.OFFLINE, name, port, origin=self._origin)
        return self._by_rule(name, port, port) or self._without_rule(name, port)

    def _by_rule(self, name: str, wanted: int, port: int) -> Verdict | None:
        rule = self._allow.match(name, wanted)
        if rule is None:
            return None
        wildcard = rule.name if rule.below and rule.name != name else None
        return verdict(reasons.RULE, name, port, allowed=True, rule=rule.text, origin=rule.origin, wildcard=wildcard)

    def _without_rule(self, name: str, port: int) -> Verdict:
        if self.mode == ONLINE:
            if port == name_lists.DNS_OVER_TLS_PORT:
                return verdict(reasons.DOH_ENDPOINT, name, port)
            return verdict(reasons.ONLINE, name, port, allowed=True)
        near = self._allow.match(name, SOME_PORT)
        if near is None:
            return verdict(reasons.NOT_ALLOWED, name, port)
        return verdict(reasons.PORT_NOT_ALLOWED, name, port, rule=near.text, origin=near.origin)

    def _reach_loopback(self, name: str, port: int) -> Verdict:
        if not self._closed:
            for address in _LOOPBACK:
                rule = self._addresses.match(address, port)
                if rule is not None:
                    return verdict(reasons.RULE, name, port, allowed=True, rule=rule.text, origin=rule.origin)
        return verdict(reasons.ADDRESS_GUARD, name, port, address=_LOOPBACK[0].text, guard=address_guard.LOOPBACK)

    def _reach_address(self, name: str, address: Address, port: int) -> Verdict:
        if self._closed:
            return verdict(reasons.OFFLINE, name, port, origin=self._origin, address=name)
        if self.mode != ONLINE:
            return self._check_rules(name, address, port, (), None)
        if self._addresses.match(address, port) is None and (
            port == name_lists.DNS_OVER_TLS_PORT or name_lists.is_resolver_address(address)
        ):
            return verdict(reasons.DOH_ENDPOINT, name, port, address=name)
        return self._check_rules(name, address, port, (), reasons.ONLINE)

    def _check_rules(
        self, name: str, address: Address, port: int, own: Collection[Address], otherwise: str | None
    ) -> Verdict:
        """Decide by address rule, else by guard, else allow for the reason *otherwise*; None denies."""
        text = address.text
        where = address_guard.guarded(address, own)
        rule = self._addresses.match(address, port, exact=where == address_guard.METADATA)
        if rule is not None:
            return verdict(
                reasons.RULE, name, port, allowed=True, rule=rule.text, origin=rule.origin, address=text, guard=where
            )
        if where is not None:
            return verdict(reasons.ADDRESS_GUARD, name, port, address=text, guard=where)
        if otherwise is None:
            return verdict(reasons.ADDRESS_LITERAL, name, port, address=text)
        return verdict(otherwise, name, port, allowed=True, address=text)


def is_loopback_name(name: str) -> bool:
    """Whether the canonical *name* means loopback by convention (RFC 6761) or by every hosts file."""
    return name in _LOOPBACK_NAMES or name.endswith(".localhost")


def bad_name(raw: bytes | str, port: int) -> Verdict:
    """The verdict on bytes that are no host; its host is printable."""
    return verdict(reasons.BAD_NAME, quoted(raw), port)
