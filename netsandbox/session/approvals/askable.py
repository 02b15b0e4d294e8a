"""Decides which refusals become a question to the user. Pure.

Rule: the user is asked only about a name that no rule allows and that nothing else forbids. The user is never asked
about a bare address, nor about a name that was refused by a deny rule, the list of DNS-over-HTTPS endpoints, the
address guard or the name parser.
"""

from __future__ import annotations

from netsandbox.policy import reasons
from netsandbox.policy.name_lists import is_shared_suffix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.names import Host
    from netsandbox.policy.verdict import Verdict

UNALLOWED = (reasons.NOT_ALLOWED, reasons.PORT_NOT_ALLOWED)


def is_askable(host: Host, decided: Verdict) -> bool:
    """Whether the user may turn *decided*, a refusal of *host*, into an approval."""
    return host.address is None and decided.reason in UNALLOWED


def owner_of(name: str) -> str | None:
    """The registered part of *name*, for the tunnel guard; None if *name* has no label in front of it.

    An approval makes us look up the whole name, so data in the labels in front of it would leave the host.
    """
    labels = name.split(".")
    for count in range(2, len(labels)):
        parent = ".".join(labels[-count:])
        if not is_shared_suffix(parent):
            return parent
    return None
