"""Notices of `run`: denials at the end, and ignored settings of untrusted files. `file_notices` has those on files."""

from __future__ import annotations

import os

from netsandbox.config.paths import PROJECT_FILES
from netsandbox.paths import short
from netsandbox.policy import reasons
from netsandbox.text import join_host_port, shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from netsandbox.api import Denial

MAX_LINES = 20
# Every program that looks up a user name tries the socket of nscd first; the log has that, and it is not worth a line.
# A refused bind and a port that could not be published were reported when it happened.
REPORTED_BEFORE = (reasons.OUTSIDE_WINDOW, reasons.WRONG_DEVICE, reasons.WINDOW_FULL, reasons.PORT_TAKEN)
NOT_REPORTED = (reasons.UNIX_SOCKET, *REPORTED_BEFORE)
UNREACHED = (reasons.LOOKUP_FAILED,)
PROFILE = "the profile opens the doors and the window alone; see `netsandbox audit show`"


def denial_lines(denials: Iterable[Denial]) -> list[str]:
    """A host that was refused at several doors, or first by the resolver, gets one line: the most specific one."""
    by_host: dict[str, Denial] = {}
    for denial in denials:
        host = denial.host or _only_port(denial)
        if denial.reason in NOT_REPORTED or host is None:
            continue
        known = by_host.get(host)
        if known is None or (known.port is None and denial.port is not None):
            by_host[host] = denial
    lines = [_denial_line(denial) for denial in by_host.values()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more hosts; see `netsandbox audit summary`"]
    return lines


def _only_port(denial: Denial) -> str | None:
    """Seatbelt reports the port and rarely the address. Refused files and services are in the log only."""
    return f"port {denial.port}" if denial.reason == reasons.SEATBELT and denial.port else None


def _denial_line(denial: Denial) -> str:
    host = denial.host
    where = _only_port(denial) if host is None else join_host_port(host, denial.port) if denial.port else host
    if denial.reason == reasons.SEATBELT:
        return f"denied {where} ({denial.reason}); {PROFILE}"
    if denial.reason in UNREACHED:
        return f"{where} is allowed but was not reached ({denial.reason}); check the name and the host's own network"
    remedy = f"allow it with {denial.flag}" if denial.flag else "no option allows it; see `netsandbox audit show`"
    return f"denied {where} ({denial.reason}); {remedy}"


def ignored_lines(ignored: Iterable[tuple[str, str]]) -> list[str]:
    """A line a file: *ignored* are names of settings, or hosts, each with `FILE:PLACE`."""
    by_file: dict[str, list[str]] = {}
    for name, origin in ignored:
        by_file.setdefault(origin.rpartition(":")[0], []).append(name)
    return [_ignored_line(file, list(dict.fromkeys(names))) for file, names in by_file.items()]


def _ignored_line(file: str, names: list[str]) -> str:
    is_default = any(os.path.abspath(file).endswith(f"/{name}") for name in PROJECT_FILES)
    command = "netsandbox trust" if is_default else f"netsandbox trust {shell_word(file)}"
    return f"{single_line(short(file))} would open {', '.join(names)}; ignored until you run `{command}`"


def shell_word(path: str) -> str:
    """*path* as it can be pasted into a shell, whatever its folders are called."""
    quoted = shell_quoted(path)
    return short(path) if quoted == path else single_line(quoted)
