"""A request to the policy, and the verdict on it."""

from __future__ import annotations

from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.names import Host

TCP = "tcp"
UDP = "udp"
DNS = "dns"


@frozen
class Request:
    """One attempt to reach or to resolve a host. For "dns" the port is ignored."""

    host: Host
    port: int
    kind: str  # "tcp" | "udp" | "dns"


@frozen
class Verdict:
    """Allowed or not, one reason of the closed list (INV-11), and the rule that decided, where one did."""

    allowed: bool
    reason: str
    rule: str | None
    origin: str | None
    host: str
    port: int
    wildcard: str | None = (
        None  # for a match below a wildcard, the name under the wildcard; the tunnel guard counts by it
    )
    address: str | None = None  # the address that was checked: a literal, or one that the name resolved to
    guard: str | None = None  # the guarded range it is in


def verdict(
    reason: str,
    host: str,
    port: int,
    *,
    allowed: bool = False,
    rule: str | None = None,
    origin: str | None = None,
    wildcard: str | None = None,
    address: str | None = None,
    guard: str | None = None,
) -> Verdict:
    """A `Verdict`, filled in one step: the constructor of the class takes longer than the decision."""
    made = Verdict.__new__(Verdict)
    made.__dict__.update(
        allowed=allowed,
        reason=reason,
        rule=rule,
        origin=origin,
        host=host,
        port=port,
        wildcard=wildcard,
        address=address,
        guard=guard,
    )
    return made
