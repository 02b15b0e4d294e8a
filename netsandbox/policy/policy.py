"""The policy: the rules of what one session may reach.

A `Policy` is checked when it is made and never edited: changed rules are a new `Policy`, so that every decision is made
under one whole policy. `decision.py` decides what follows from the rules. Every launch loads this module; `rules.py` is
loaded only for rules that are still text.
"""

from __future__ import annotations

from netsandbox.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from netsandbox.policy.budgets import BudgetRule
    from netsandbox.policy.decision import Decision
    from netsandbox.policy.explain import Explanation
    from netsandbox.policy.inspection import Inspection
    from netsandbox.policy.ip import Address
    from netsandbox.policy.names import Host
    from netsandbox.policy.verdict import Request, Verdict

OFFLINE = "offline"
LOCALHOST = "localhost"
FILTERED = "filtered"
ONLINE = "online"
MODES = (OFFLINE, LOCALHOST, FILTERED, ONLINE)
CLOSED = (OFFLINE, LOCALHOST)
DEFAULT_PORTS: tuple[int, ...] = (80, 443)
EVERY_PORT = 0  # as `trie.EVERY_PORT`, which is not loaded before the first decision


class DomainRule:
    """One domain rule. A policy may hold a hundred thousand, so it is a bare object with slots; nobody writes to it."""

    __slots__ = ("apex", "below", "exceptions", "name", "origin", "ports", "text")

    def __init__(
        self,
        text: str,
        origin: str,
        name: str,
        ports: tuple[int, ...] | None,
        *,
        apex: bool,
        below: bool,
        exceptions: tuple[DomainRule, ...] = (),
    ) -> None:
        self.text = text  # as the user wrote it
        self.origin = origin  # where: an option, or file:line
        self.name = name  # canonical
        self.ports = ports  # None: the default ports; (): every port
        self.apex = apex  # covers the name itself
        self.below = below  # covers every name under it
        self.exceptions = exceptions  # of a deny rule: what it does not deny; their ports are among its own

    def covers(self, name: str) -> bool:
        """Whether *name* matches the pattern, whatever the port and the exceptions."""
        return (self.apex and name == self.name) or (self.below and name.endswith(f".{self.name}"))

    def __repr__(self) -> str:
        return f"DomainRule({self.text!r}, {self.origin!r})"


class AddressRule:
    """One address rule: a network and its ports."""

    __slots__ = ("length", "network", "origin", "ports", "text")

    def __init__(self, text: str, origin: str, network: Address, length: int, ports: tuple[int, ...] | None) -> None:
        self.text = text
        self.origin = origin
        self.network = network
        self.length = length  # of the prefix, in bits
        self.ports = ports

    @property
    def exact(self) -> bool:
        """Whether the rule names one single address."""
        return self.length == (32 if self.network.version == 4 else 128)

    def __repr__(self) -> str:
        return f"AddressRule({self.text!r}, {self.origin!r})"


_KINDS = (DomainRule, DomainRule, AddressRule, (), ())  # of the lists of a policy; (): always checked


class Policy:
    """Everything that one session may reach.

    Rules are strings as on the command line, or rules already parsed with their origins. *mode* is `offline`,
    `localhost`, `filtered` or `online`; None is `filtered` when anything is allowed and `offline` when nothing is, and
    `localhost` with rules is `filtered` too. *mode_origin* is the option or file that closes the network, for
    explanations. *inspection* has the rules for requests; a host that they allow can be reached. *budgets* limit the
    bytes of what is allowed. `UsageError` for anything that is not exactly a rule.
    """

    __slots__ = (
        "_decision",
        "allow_addresses",
        "allow_domains",
        "allow_query_types",
        "allow_unix_sockets",
        "budgets",
        "default_ports",
        "deny_domains",
        "inspection",
        "mode",
        "mode_origin",
    )

    def __init__(
        self,
        allow_domains: Iterable[str | DomainRule] | None = (),
        deny_domains: Iterable[str | DomainRule] | None = (),
        allow_addresses: Iterable[str | AddressRule] | None = (),
        mode: str | None = None,
        default_ports: Iterable[int] = DEFAULT_PORTS,
        allow_unix_sockets: Iterable[str] | None = (),
        allow_query_types: Iterable[str] | None = (),
        mode_origin: str = "",
        inspection: Inspection | None = None,
        budgets: Iterable[str | BudgetRule] = (),
    ) -> None:
        given = (allow_domains, deny_domains, allow_addresses, allow_unix_sockets, allow_query_types)
        self.allow_domains: tuple[DomainRule, ...]
        self.deny_domains: tuple[DomainRule, ...]
        self.allow_addresses: tuple[AddressRule, ...]
        self.allow_unix_sockets: tuple[str, ...]
        self.allow_query_types: tuple[str, ...]
        self.default_ports = DEFAULT_PORTS
        parsed: Any = map(tuple, given)  # type: ignore[arg-type]
        if default_ports != DEFAULT_PORTS or not all(map(_are_parsed, given, _KINDS)):
            from netsandbox.policy import rules

            self.default_ports = rules.ports(default_ports)
            parsed = (
                rules.domains(allow_domains, "allow_domains", deny=False),
                rules.domains(deny_domains, "deny_domains", deny=True),
                rules.addresses(allow_addresses, "allow_addresses"),
                rules.unix_sockets(allow_unix_sockets, "allow_unix_sockets"),
                rules.query_types(allow_query_types, "allow_query_types"),
            )
        (
            self.allow_domains,
            self.deny_domains,
            self.allow_addresses,
            self.allow_unix_sockets,
            self.allow_query_types,
        ) = parsed
        self.inspection = inspection  # the rules for requests, if there are any
        self.budgets: tuple[BudgetRule, ...] = ()
        if budgets:
            from netsandbox.policy.budgets import budget_rules

            self.budgets = budget_rules(budgets)
        if inspection is not None:
            self.allow_domains += inspection.implied_domains
        if mode is None or mode == LOCALHOST:
            mode = FILTERED if self.allow_domains or self.allow_addresses else mode or OFFLINE
        if mode not in MODES:
            from netsandbox.text import quoted

            raise UsageError(f"mode {quoted(str(mode))} is unknown; use one of {', '.join(MODES)}")
        self.mode = mode
        self.mode_origin = mode_origin
        self._decision: Decision | None = None

    def __getstate__(self) -> object:
        """What is sent to the process of a session: the rules, without what was computed from them."""
        return None, {name: getattr(self, name) for name in self.__slots__ if name != "_decision"} | {"_decision": None}

    def decide(self, request: Request) -> Verdict:
        """The one decision behind every door (INV-3)."""
        return (self._decision or self._decided()).decide(request)

    def decide_query(self, host: Host) -> Verdict:
        """`decide` for a request of kind DNS."""
        return (self._decision or self._decided()).resolve(host)

    def check_address(self, host: Host, address: Address, port: int, own: Collection[Address] = ()) -> Verdict:
        """Check one address that an allowed *host* resolved to (or is), before it is dialled (INV-4).

        *own* holds the host's own addresses as they are now.
        """
        return (self._decision or self._decided()).check_address(host, address, port, own)

    def denies_name(self, host: Host, port: int = EVERY_PORT) -> Verdict | None:
        """The denial by a deny rule or the list of DoH endpoints, else None; for every link of a CNAME chain."""
        return (self._decision or self._decided()).denies_name(host, port)

    def explain(self, request: Request) -> Explanation:
        """The verdict, its cause, and the smallest change that would turn it."""
        from netsandbox.policy.explain import explanation

        return explanation(self, request)

    def _decided(self) -> Decision:
        from netsandbox.policy.decision import Decision

        self._decision = Decision(self)
        return self._decision


def _are_parsed(given: object, kind: Any) -> bool:
    return isinstance(given, (tuple, list)) and all(isinstance(each, kind) for each in given)
