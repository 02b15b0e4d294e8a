"""Notices of `run`: denials at the end, and ignored settings of untrusted files. `file_notices` has those on files."""

from __future__ import annotations

import os

from netsandbox.config.paths import PROJECT_FILES
from netsandbox.paths import home, short
from netsandbox.policy import reasons
from netsandbox.policy.file_denials import Advice, is_login, is_quiet, is_secret, removal, shell_path
from netsandbox.policy.file_rules import READ
from netsandbox.policy.habits import is_habitual_socket
from netsandbox.runtime.protection import own_paths
from netsandbox.text import join_host_port, shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from netsandbox.api import Denial, FileDenial

MAX_LINES = 20
MAX_FILE_LINES = 5
MAX_KEPT = 3
# A refused bind and a port that could not be published were reported when it happened.
REPORTED_BEFORE = (reasons.OUTSIDE_WINDOW, reasons.WRONG_DEVICE, reasons.WINDOW_FULL, reasons.PORT_TAKEN)
SOCKET_OPTION = "--allow-unix-socket "
UNREACHED = (reasons.LOOKUP_FAILED,)
PROFILE = "the profile opens the doors and the window alone; see `netsandbox audit show`"


def denial_lines(denials: Iterable[Denial]) -> list[str]:
    """A host that was refused at several doors, or first by the resolver, gets one line: the most specific one."""
    by_host: dict[str, Denial] = {}
    for denial in denials:
        host = denial.host or _only_port(denial) or _socket(denial)
        if denial.reason in REPORTED_BEFORE or host is None:
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


def _socket(denial: Denial) -> str | None:
    """A Unix socket that an option would open, unless programs try it by habit."""
    if denial.reason != reasons.UNIX_SOCKET or denial.flag is None:
        return None
    path = denial.flag.removeprefix(SOCKET_OPTION)
    return None if is_habitual_socket({"path": path}) else f"the socket {path}"


def _denial_line(denial: Denial) -> str:
    host = denial.host
    where = (
        _only_port(denial) or _socket(denial)
        if host is None
        else join_host_port(host, denial.port)
        if denial.port
        else host
    )
    if denial.reason == reasons.SEATBELT:
        return f"denied {where} ({denial.reason}); {PROFILE}"
    if denial.reason in UNREACHED:
        return f"{where} is allowed but was not reached ({denial.reason}); check the name and the host's own network"
    remedy = f"allow it with {denial.flag}" if denial.flag else "no option allows it; see `netsandbox audit show`"
    return f"denied {where} ({denial.reason}); {remedy}"


def file_denial_lines(denials: Iterable[FileDenial], *, succeeded: bool = False) -> list[str]:
    """A line for each option that would open a refused file. Start-up files of shells are only in the log, and so is
    what a command that *succeeded* did not need."""
    own = os.path.realpath(home())
    advice = Advice(own, os.path.realpath, own_paths)
    by_option: dict[tuple[str, str] | str | None, list[FileDenial]] = {}  # or by the rule that denies
    for denial in denials:
        is_told = denial.reason != reasons.MADE_LATER
        if is_told and not is_quiet(denial.path, own, denial.operation, succeeded=succeeded):
            change = denial.rule or advice.option(denial.path, denial.operation, denial.reason)
            by_option.setdefault(change, []).append(denial)
    lines = [_file_line(change, group, advice, own) for change, group in by_option.items()]
    if len(lines) > MAX_FILE_LINES:
        rest = len(lines) - MAX_FILE_LINES
        lines = [*lines[:MAX_FILE_LINES], f"and {rest} more folders; see `netsandbox audit show --denied --event file`"]
    return lines


def _file_line(change: tuple[str, str] | str | None, group: list[FileDenial], advice: Advice, own: str) -> str:
    first, paths = group[0], {denial.path for denial in group}
    doing = {"read": "reading", "execute": "executing"}.get(first.operation, "writing")
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    real = advice.real(first.path)
    link = f", a link to {shown_path(real)}," if real != first.path else ""
    what = f"denied {doing} {shown_path(first.path)}{link}{more}".rstrip(",")
    if change is None:
        why = ", because it belongs to netsandbox" if advice.is_own(real, first.operation) else ""
        return f"{what}; no option allows it{why}"
    if not isinstance(change, tuple):
        return f"{what}; {single_line(removal(change))} to allow it"
    name, value = change
    verb = "show" if name == "--allow-read" else "allow"
    option = single_line(f"{name} {shell_path(value, own)}")
    secret = ", which holds secrets" if is_secret(value, own) else ""
    if first.operation == READ and is_login(first.path, own):
        what += ", which package managers look for at each start"
    return f"{what}; {verb} {'them' if more else 'it'} with {option}{secret}"


def kept_lines(kept: Sequence[str]) -> list[str]:
    """What the command wrote into its private home, where the user's own programs do not see it."""
    if not kept:
        return []
    more = f" and {len(kept) - MAX_KEPT} more" if len(kept) > MAX_KEPT else ""
    return [f"kept inside: {', '.join(map(shown_path, kept[:MAX_KEPT]))}{more}; `netsandbox home` shows it"]


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


def shown_path(path: str) -> str:
    """*path* for a terminal: `~` for the home, everything escaped that the terminal would obey."""
    return single_line(short(path))
