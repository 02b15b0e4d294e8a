"""What a user reads after a run with refusals: one line a host, with the option that would allow it."""

from __future__ import annotations

from netsandbox.policy import reasons
from netsandbox.text import join_host_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.api import Denial

MAX_LINES = 20
# Every program that looks up a user name asks nscd by a unix socket first; that is in the log, not worth a line here.
# A refused bind, and a port that could not be published, were told when it happened.
TOLD = (reasons.OUTSIDE_WINDOW, reasons.WRONG_DEVICE, reasons.WINDOW_FULL, reasons.PORT_TAKEN)
UNSAID = (reasons.UNIX_SOCKET, *TOLD)
UNREACHED = (reasons.LOOKUP_FAILED,)
PROFILE = "the profile opens the doors and the window alone; see `netsandbox audit show`"


def denial_lines(denials: Iterable[Denial]) -> list[str]:
    """A host that was refused at several doors, or first by the resolver, gets one line: the one that says most."""
    by_host: dict[str, Denial] = {}
    for denial in denials:
        host = denial.host or _only_port(denial)
        if denial.reason in UNSAID or host is None:
            continue
        known = by_host.get(host)
        if known is None or (known.port is None and denial.port is not None):
            by_host[host] = denial
    lines = [_line(denial) for denial in by_host.values()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more hosts; see `netsandbox audit summary`"]
    return lines


def _only_port(denial: Denial) -> str | None:
    """Seatbelt tells the port and rarely the address. Files and services, which it refuses too, are left to the log."""
    return f"port {denial.port}" if denial.reason == reasons.SEATBELT and denial.port else None


def _line(denial: Denial) -> str:
    host = denial.host
    where = _only_port(denial) if host is None else join_host_port(host, denial.port) if denial.port else host
    if denial.reason == reasons.SEATBELT:
        return f"denied {where} ({denial.reason}); {PROFILE}"
    if denial.reason in UNREACHED:
        return f"{where} is allowed but was not reached ({denial.reason}); check the name and the host's own network"
    remedy = f"allow it with {denial.flag}" if denial.flag else "no option allows it; see `netsandbox audit show`"
    return f"denied {where} ({denial.reason}); {remedy}"
