"""Which refusals may become a question to the user. Pure.

Rule kept: a question is put only where nothing speaks against a name but that no rule allows it. What a deny rule, the
list of DNS-over-HTTPS endpoints, the guard of addresses or the reader of names refuses is never asked, and neither is a
bare address.
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
    """Whether *decided*, a refusal of *host*, is one that an answer of the user may turn."""
    return host.address is None and decided.reason in UNALLOWED


def owner_of(name: str) -> str | None:
    """The part of *name* that somebody registered, for the tunnel guard; None where nothing stands below it.

    An approval has the whole name looked up, so what a program wrote into the labels in front would leave with it.
    """
    labels = name.split(".")
    for count in range(2, len(labels)):
        parent = ".".join(labels[-count:])
        if not is_shared_suffix(parent):
            return parent
    return None
