"""Budgets: how many bytes a session may exchange with its hosts. Pure: the rules, and the account of what was used.

`[HOST=]LIMITS`, where the limits are `10MB` (both directions together), `up=1MB`, `down=1GB`, or some of them separated
by commas. Without a host the budget is that of the whole session. Rules kept:

1. All connections to hosts of the pattern share one budget. If several budgets cover a host, each of them applies, so
   another budget can only take away.
2. A byte is counted when it is passed on. What is passed on is never more than `left_up` or `left_down`.
3. The host is the one that was decided on (INV-2), so no spelling of it has a budget of its own.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.policy.rules import items, parse_domain, refuse
from netsandbox.policy.sizes import parse_size, shown_size
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.policy.policy import DomainRule

UP, DOWN, BOTH = "up", "down", ""
UNLIMITED = 1 << 62
EXAMPLE = "write HOST=10MB, HOST=10MB,up=1MB or up=1MB"


@frozen
class BudgetRule:
    """One budget; a limit that the user did not set is None."""

    text: str  # as the user wrote it
    origin: str
    domain: DomainRule | None  # None: the whole session
    both: int | None
    up: int | None
    down: int | None

    def covers(self, host: str, port: int) -> bool:
        """Whether bytes to and from *host* count. A pattern without a port is about every port."""
        domain = self.domain
        return domain is None or (domain.covers(host) and (not domain.ports or port in domain.ports))


def parse_budget(text: str, origin: str) -> BudgetRule:
    """Read one budget."""
    host, limits = _split(text)
    domain = None
    if host is not None:
        if "." not in host and ":" not in host:  # a slip such as dwon=1MB must not become a budget of nobody
            refuse(origin, text, f"names {quoted(host)}", f"{EXAMPLE}; a host without a dot needs its port, NAME:*")
        domain = parse_domain(host, origin, deny=True)
        if domain.exceptions:
            refuse(origin, text, "has an exception", "name the hosts one by one, each with its budget")
    found: dict[str, int] = {}
    for part in limits.split(","):
        direction, sign, written = part.rpartition("=")
        direction = direction.strip().lower()
        if (sign and direction not in (UP, DOWN)) or direction in found:
            refuse(origin, text, f"has the limit {quoted(part.strip())}", EXAMPLE)
        size = parse_size(written.strip())
        if size is None:
            refuse(
                origin, text, f"has the size {quoted(written.strip())}", f"{EXAMPLE}, in kB, MB, GB, KiB, MiB or GiB"
            )
        found[direction] = size
    return BudgetRule(text, origin, domain, found.get(BOTH), found.get(UP), found.get(DOWN))


def parse_budgets(given: Iterable[tuple[str, str]]) -> tuple[BudgetRule, ...]:
    """Texts with their origins."""
    return tuple(parse_budget(text, origin) for text, origin in given)


def budget_rules(given: Iterable[str | BudgetRule]) -> tuple[BudgetRule, ...]:
    """Budgets, parsed where they were strings."""
    found = []
    for item in items(given, "budgets"):
        if not isinstance(item, (str, BudgetRule)):
            raise UsageError(f"budgets: {quoted(repr(item))} is not a budget; give a string such as '10MB'")
        found.append(parse_budget(item, "budgets") if isinstance(item, str) else item)
    return tuple(found)


def _split(text: str) -> tuple[str | None, str]:
    """The host, if there is one, and the limits."""
    first = text.partition(",")[0]
    name, sign, _ = first.partition("=")
    if not sign or name.strip().lower() in (UP, DOWN):
        return None, text
    return name.strip(), text.partition("=")[2]


class Account:
    """What the session has used of one budget."""

    __slots__ = ("down", "rule", "up")

    def __init__(self, rule: BudgetRule) -> None:
        self.rule = rule
        self.up = 0
        self.down = 0

    @property
    def left_up(self) -> int:
        return self._left(self.rule.up, self.up)

    @property
    def left_down(self) -> int:
        return self._left(self.rule.down, self.down)

    def _left(self, limit: int | None, used: int) -> int:
        both = self.rule.both
        left = UNLIMITED if limit is None else limit - used
        return max(0, left if both is None else min(left, both - self.up - self.down))

    @property
    def percent(self) -> int:
        """How much of its tightest limit was used, rounded down."""
        rule = self.rule
        pairs = ((rule.both, self.up + self.down), (rule.up, self.up), (rule.down, self.down))
        return max(100 * used // limit for limit, used in pairs if limit)

    @property
    def used(self) -> str:
        return f"{shown_size(self.up)} up and {shown_size(self.down)} down"

    @property
    def advice(self) -> str:
        """For the reader of a refusal: the option, what was used, and what helps."""
        rule = self.rule
        where = "--budget" if rule.origin == "--budget" else f"the budget of {rule.origin},"
        return f"{where} {rule.text} is used up ({self.used}); the user can start the session with a larger one."


class Meter:
    """Counts the bytes of one connection, for all budgets that cover its host."""

    __slots__ = ("accounts",)

    def __init__(self, accounts: tuple[Account, ...]) -> None:
        self.accounts = accounts

    def left_up(self) -> int:
        return min(account.left_up for account in self.accounts)

    def left_down(self) -> int:
        return min(account.left_down for account in self.accounts)

    def charge_up(self, count: int) -> None:
        for account in self.accounts:
            account.up += count

    def charge_down(self, count: int) -> None:
        for account in self.accounts:
            account.down += count

    @property
    def is_spent(self) -> bool:
        """Whether nothing more can be passed on, in one direction at least."""
        return not (self.left_up() and self.left_down())

    @property
    def scarcest(self) -> Account:
        """The one that is used up, or will be first."""
        return min(self.accounts, key=lambda account: min(account.left_up, account.left_down))


class Budgets:
    """The accounts of one session."""

    __slots__ = ("accounts",)

    def __init__(self, rules: Iterable[BudgetRule]) -> None:
        self.accounts = tuple(map(Account, rules))

    def meter(self, host: str, port: int) -> Meter | None:
        """For a connection to *host*; None if no budget covers it."""
        found = tuple(account for account in self.accounts if account.rule.covers(host, port))
        return Meter(found) if found else None

    def spent(self, host: str, port: int) -> Account | None:
        """The budget that refuses a new connection to *host*."""
        meter = self.meter(host, port)
        return meter.scarcest if meter is not None and meter.is_spent else None

    def used(self) -> list[dict[str, object]]:
        """For the record of the session's end."""
        return [{"budget": each.rule.text, "bytes_up": each.up, "bytes_down": each.down} for each in self.accounts]
