"""The decision: may this host be reached, or resolved?

Pure: no I/O, no clock, no state that changes. A `Policy` is never edited; whoever changes the rules puts a new one in
its place, so every decision is made under one whole policy. Rules kept, in this order:

1. Deny rules and known DNS-over-HTTPS endpoints say no in every mode, whatever allows the name (INV-6).
2. The host's loopback is never ours to give: only an address rule opens it.
3. Offline, or nothing allowed: everything is denied.
4. An address needs an address rule (online: must not be guarded); a name needs a domain rule (online: none).
5. After the lookup every address is judged again by `check_address`, literals too (INV-4).
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.policy import doh, guard, reasons, rules
from netsandbox.policy.ip import Address, unmapped
from netsandbox.policy.names import Host, printable
from netsandbox.policy.trie import EVERY_PORT, SOME_PORT, AddressTable, NameTrie
from netsandbox.policy.verdict import DNS, TCP, UDP, Request, Verdict, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from netsandbox.policy.explain import Explanation
    from netsandbox.policy.patterns import AddressRule, DomainRule

OFFLINE = "offline"
LOCALHOST = "localhost"
FILTERED = "filtered"
ONLINE = "online"
MODES = (OFFLINE, LOCALHOST, FILTERED, ONLINE)
DEFAULT_PORTS = (80, 443)

_LOOPBACK_NAMES = frozenset(
    """
    localhost localhost4 localhost6 ip6-localhost ip6-loopback localhost.localdomain
    localhost4.localdomain4 localhost6.localdomain6
    """.split()  # noqa: SIM905 (a literal would take a line a name)
)
_LOOPBACK = (Address(4, 0x7F000001), Address(6, 1))


class Policy:
    """Everything that one session may reach.

    Rules are strings as on the command line, or rules already parsed with their origins. *mode* is `offline`,
    `localhost`, `filtered` or `online`; None is `filtered` when anything is allowed and `offline` when nothing is.
    `UsageError` for anything that is not exactly a rule.
    """

    __slots__ = (
        "_addresses",
        "_allow",
        "_deny",
        "allow_addresses",
        "allow_domains",
        "allow_query_types",
        "allow_unix_sockets",
        "default_ports",
        "deny_domains",
        "mode",
    )

    def __init__(  # noqa: PLR0917 (the public constructor; callers use keywords)
        self,
        allow_domains: Iterable[str | DomainRule] | None = (),
        deny_domains: Iterable[str | DomainRule] | None = (),
        allow_addresses: Iterable[str | AddressRule] | None = (),
        mode: str | None = None,
        default_ports: Iterable[int] = DEFAULT_PORTS,
        allow_unix_sockets: Iterable[str] | None = (),
        allow_query_types: Iterable[str] | None = (),
    ) -> None:
        self.allow_domains = rules.domains(allow_domains, "--allow-domain", deny=False)
        self.deny_domains = rules.domains(deny_domains, "--deny-domain", deny=True)
        self.allow_addresses = rules.addresses(allow_addresses)
        self.default_ports = rules.ports(default_ports)
        self.allow_unix_sockets = rules.unix_sockets(allow_unix_sockets)
        self.allow_query_types = rules.query_types(allow_query_types)
        if mode is None:
            mode = FILTERED if self.allow_domains or self.allow_addresses else OFFLINE
        if mode not in MODES:
            raise UsageError(f"mode {printable(str(mode))} is unknown; use one of {', '.join(MODES)}")
        self.mode = mode
        self._allow = NameTrie(self.allow_domains, self.default_ports)
        self._deny = NameTrie(self.deny_domains, ())
        self._addresses = AddressTable(self.allow_addresses, self.default_ports)

    def decide(self, request: Request) -> Verdict:
        """The one decision behind every door (INV-3)."""
        host, port, kind = request.host, request.port, request.kind
        if kind == DNS:
            return self._resolve(host)
        if type(port) is not int or not 0 < port < 65536:
            return verdict(reasons.BAD_PORT, host.text, 0)
        if kind == TCP:
            return self._reach(host, port)
        if kind != UDP:
            return verdict(reasons.INTERNAL, host.text, port)
        answer = self._reach(host, port)
        return verdict(reasons.UDP, host.text, port) if answer.allowed else answer  # no door carries it

    def check_address(self, host: Host, address: Address, port: int, own: Collection[Address] = ()) -> Verdict:
        """Judge one address that an allowed *host* resolved to (or is), before it is dialled (INV-4).

        *own* holds the host's own addresses as they are now.
        """
        address = unmapped(address)
        if self.mode in (OFFLINE, LOCALHOST):
            return verdict(reasons.OFFLINE, host.text, port, address=address.text)
        return self._judge(host.text, address, port, own, reasons.ONLINE if self.mode == ONLINE else reasons.RULE)

    def denies_name(self, host: Host, port: int = EVERY_PORT) -> Verdict | None:
        """What the deny list and the list of DoH endpoints say against a name, for every link of a CNAME chain."""
        name = host.text
        rule = self._deny.match(name, port)
        if rule is not None:
            return verdict(reasons.DENY_RULE, name, port, rule=rule.text, origin=rule.origin)
        if doh.is_resolver(name):
            return verdict(reasons.DOH_ENDPOINT, name, port)
        return None

    def explain(self, request: Request) -> Explanation:
        """The verdict, why, and the smallest change that would turn it."""
        from netsandbox.policy.explain import explanation

        return explanation(self, request)

    def _resolve(self, host: Host) -> Verdict:
        name = host.text
        if host.address is not None:
            return verdict(reasons.ADDRESS_LITERAL, name, 0, address=name)
        denied = self.denies_name(host)
        if denied is not None:
            return denied
        if is_loopback_name(name):
            return verdict(reasons.LOOPBACK, name, 0, allowed=True)
        if self._closed():
            return verdict(reasons.OFFLINE, name, 0)
        return self._by_rule(name, SOME_PORT, 0) or self._without_rule(name, 0)

    def _reach(self, host: Host, port: int) -> Verdict:
        name = host.text
        if host.address is not None:
            return self._reach_address(name, host.address, port)
        denied = self.denies_name(host, port)
        if denied is not None:
            return denied
        if is_loopback_name(name):
            return self._reach_loopback(name, port)
        if self._closed():
            return verdict(reasons.OFFLINE, name, port)
        return self._by_rule(name, port, port) or self._without_rule(name, port)

    def _by_rule(self, name: str, wanted: int, port: int) -> Verdict | None:
        rule = self._allow.match(name, wanted)
        if rule is None:
            return None
        wildcard = rule.name if rule.below and rule.name != name else None
        return verdict(reasons.RULE, name, port, allowed=True, rule=rule.text, origin=rule.origin, wildcard=wildcard)

    def _without_rule(self, name: str, port: int) -> Verdict:
        if self.mode == ONLINE:
            if port == doh.DNS_OVER_TLS_PORT:
                return verdict(reasons.DOH_ENDPOINT, name, port)
            return verdict(reasons.ONLINE, name, port, allowed=True)
        near = self._allow.match(name, SOME_PORT)
        if near is None:
            return verdict(reasons.NOT_ALLOWED, name, port)
        return verdict(reasons.PORT_NOT_ALLOWED, name, port, rule=near.text, origin=near.origin)

    def _reach_loopback(self, name: str, port: int) -> Verdict:
        if self.mode not in (OFFLINE, LOCALHOST):
            for address in _LOOPBACK:
                rule = self._addresses.match(address, port)
                if rule is not None:
                    return verdict(reasons.RULE, name, port, allowed=True, rule=rule.text, origin=rule.origin)
        return verdict(reasons.ADDRESS_GUARD, name, port, address=_LOOPBACK[0].text, guard=guard.LOOPBACK)

    def _reach_address(self, name: str, address: Address, port: int) -> Verdict:
        if self._closed():
            return verdict(reasons.OFFLINE, name, port, address=name)
        if self.mode != ONLINE:
            return self._judge(name, address, port, (), None)
        if self._addresses.match(address, port) is None and (
            port == doh.DNS_OVER_TLS_PORT or doh.is_resolver_address(address)
        ):
            return verdict(reasons.DOH_ENDPOINT, name, port, address=name)
        return self._judge(name, address, port, (), reasons.ONLINE)

    def _judge(
        self, name: str, address: Address, port: int, own: Collection[Address], otherwise: str | None
    ) -> Verdict:
        """By address rule, else by guard, else *otherwise*: the reason that lets it through, None for none."""
        text = address.text
        where = guard.guarded(address, own)
        rule = self._addresses.match(address, port, exact=where == guard.METADATA)
        if rule is not None:
            return verdict(
                reasons.RULE, name, port, allowed=True, rule=rule.text, origin=rule.origin, address=text, guard=where
            )
        if where is not None:
            return verdict(reasons.ADDRESS_GUARD, name, port, address=text, guard=where)
        if otherwise is None:
            return verdict(reasons.ADDRESS_LITERAL, name, port, address=text)
        return verdict(otherwise, name, port, allowed=True, address=text)

    def _closed(self) -> bool:
        mode = self.mode
        if mode == ONLINE:
            return False
        return mode != FILTERED or not (self.allow_domains or self.allow_addresses)


def is_loopback_name(name: str) -> bool:
    """Whether the canonical *name* means loopback by convention (RFC 6761) or by every hosts file."""
    return name in _LOOPBACK_NAMES or name.endswith(".localhost")


def bad_name(raw: bytes | str, port: int) -> Verdict:
    """The verdict on bytes that are no host; its host is printable."""
    return verdict(reasons.BAD_NAME, printable(raw), port)
