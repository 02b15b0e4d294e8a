"""Notices of `run`: denials at the end, and what files of configuration do. `file_notices` has those on the rules for
files."""

from __future__ import annotations

import os

from netsandbox.audit.log import MAX_DENIED
from netsandbox.config.paths import PROJECT_FILES
from netsandbox.paths import home, short
from netsandbox.policy import reasons
from netsandbox.policy.file_denials import Advice, is_login, is_quiet, is_secret, not_advised, removal, shell_path
from netsandbox.policy.file_rules import READ
from netsandbox.policy.habits import did_well, is_habitual_socket
from netsandbox.policy.missed_variables import missed
from netsandbox.policy.variables import VariableRules
from netsandbox.runtime.protection import own_paths
from netsandbox.text import join_host_port, printable, shell_quoted, single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from netsandbox.config.file_settings import FileSettings
    from netsandbox.policy.variables import Layer
    from netsandbox.session.launch import Denial, FileDenial, Outcome
    from netsandbox.settings import RunSettings

    Change = tuple[str, str] | str | None  # an option with its value, or a rule

MAX_LINES = 20
MAX_FILE_LINES = 5
MAX_KEPT = 3
MAX_REQUESTS = 4  # of one host
MAX_REQUEST = 200  # characters
# A refused bind and a port that could not be published were reported when it happened.
REPORTED_BEFORE = (reasons.OUTSIDE_WINDOW, reasons.WRONG_DEVICE, reasons.WINDOW_FULL, reasons.PORT_TAKEN)
SSH_CLIENTS, SSH_PORT = ("ssh", "scp", "sftp", "sshfs", "mosh", "ssh-copy-id"), ":22"
PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
SOCKET_OPTION = "--allow-unix-socket "
UNREACHED = (reasons.LOOKUP_FAILED,)
PROFILE = "the profile opens the doors and the window alone; see `netsandbox audit show`"


def outcome_lines(outcome: Outcome, command: Sequence[str], *, debug: bool = False) -> list[str]:
    """What the command was refused, and what it left in its private home. With *debug*, denials were printed before,
    except for files that only a command which failed may have needed."""
    files = _tried(outcome.denied_files) if debug else outcome.denied_files
    return [
        *(() if debug else denial_lines(outcome.denied, command)),
        *file_denial_lines(files, succeeded=did_well(outcome.returncode)),
        *kept_lines(outcome.kept),
    ]


def _tried(denials: Iterable[FileDenial]) -> list[FileDenial]:
    """The files that programs try and mostly do without, which `audit.denials` leaves to the end."""
    own = os.path.realpath(home())
    return [denial for denial in denials if is_quiet(denial.path, own, denial.operation, succeeded=True)]


def withheld_names(settings: RunSettings) -> list[str]:
    """The variables of this process that the command would not get."""
    _, names = VariableRules(settings.variables).split(os.environb)
    has_placeholder = settings.secrets.variables if settings.secrets is not None else ()
    return [printable(os.fsdecode(name)) for name in names if name not in has_placeholder]


def missed_lines(command: Sequence[str], withheld: Iterable[str], layers: Iterable[Layer]) -> list[str]:
    """A *command* that failed may have wanted a variable that it did not get."""
    names = missed((name for name in withheld if os.environ.get(name)), command, layers)
    one = f"pass it with --pass-env {names[0]}" if len(names) == 1 else "--pass-env NAME passes one"
    return [f"withheld: {', '.join(names)}; {one}"] if names else []


def denial_lines(denials: Iterable[Denial], command: Sequence[str] = ()) -> list[str]:
    """A host that was refused at several doors, or first by the resolver, gets one line: the most specific one. The
    *command* tells which port was meant where only the name was looked up."""
    port = SSH_PORT if uses_ssh(command) else ""
    by_host: dict[str, Denial] = {}
    denials = tuple(denials)
    for denial in denials:
        if denial.request is not None:
            continue
        host = denial.host or _only_port(denial) or _socket(denial)
        if denial.reason in REPORTED_BEFORE or host is None:
            continue
        known = by_host.get(host)
        if known is None or (known.port is None and denial.port is not None):
            by_host[host] = denial
    lines = [_denial_line(denial, port) for denial in by_host.values()]
    lines += _request_lines([denial for denial in denials if denial.request is not None])
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more hosts; see `netsandbox audit summary`"]
    if len(denials) >= MAX_DENIED:  # what came later is in the log only
        lines.append(f"only the first {MAX_DENIED} kinds of denials are named here; see `netsandbox audit summary`")
    return lines


def _request_lines(denials: Sequence[Denial]) -> list[str]:
    """The first few refused requests of each host, and how many more there were."""
    by_host: dict[str, list[Denial]] = {}
    for denial in denials:
        by_host.setdefault(denial.host or "", []).append(denial)
    lines: list[str] = []
    for host, group in by_host.items():
        lines += map(_request_line, group[:MAX_REQUESTS])
        if len(group) > MAX_REQUESTS:
            more = len(group) - MAX_REQUESTS
            lines.append(f"denied {more} more requests to {host}; see `netsandbox audit show --http --denied`")
    return lines


def _request_line(denial: Denial) -> str:
    from netsandbox.policy.explain import TEXTS

    times = f", {denial.count} times" if denial.count > 1 else ""
    if denial.flag:
        remedy = f"allow it with {denial.flag}"
    elif denial.reason == reasons.REQUEST_DENIED:
        remedy = "a --deny-http rule wins over every allow; `netsandbox explain --last` names it"
    else:
        remedy = TEXTS.get(denial.reason, ("", ""))[1] or "`netsandbox explain --last` says more"
    return f"denied {single_line(denial.request or '', MAX_REQUEST)} ({denial.reason}){times}; {remedy}"


def uses_ssh(command: Sequence[str]) -> bool:
    """Whether the command is a client of ssh, or names a host for one, as git does."""
    named = any(word.startswith(("ssh://", "git@")) for word in command)
    return named or os.path.basename(next(iter(command), "")) in SSH_CLIENTS


def _only_port(denial: Denial) -> str | None:
    """Seatbelt reports the port and rarely the address. Refused files and services are in the log only."""
    return f"port {denial.port}" if denial.reason == reasons.SEATBELT and denial.port else None


def _socket(denial: Denial) -> str | None:
    """A Unix socket that an option would open, unless programs try it by habit."""
    if denial.reason != reasons.UNIX_SOCKET or denial.flag is None:
        return None
    path = denial.flag.removeprefix(SOCKET_OPTION)
    return None if is_habitual_socket({"path": path}) else f"the socket {path}"


def _denial_line(denial: Denial, meant: str) -> str:
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
        return f"{where} is allowed but was not reached ({denial.reason}); {_network_advice()}"
    if denial.reason == reasons.OWN_LOCALHOST:
        return f"nothing listens on {where} in this session; the host's port is reached with {denial.flag}"
    if denial.reason == reasons.DENY_RULE:
        return f"denied {where} ({denial.reason}: it wins over every allow); `netsandbox explain --last` names it"
    if denial.reason == reasons.BUDGET:
        return f"denied {where} ({denial.reason}: it is used up); `netsandbox explain --last` names it"
    port = meant if denial.port is None and denial.flag == f"--allow-domain {host}" else ""
    remedy = f"allow it with {denial.flag}{port}" if denial.flag else _advice(denial.reason, where)
    return f"denied {where} ({denial.reason}); {remedy}{_caution(denial)}"


def _caution(denial: Denial) -> str:
    """What opens more than the user may think."""
    if not (denial.flag or "").startswith("--allow-address "):
        return ""
    from netsandbox.policy.address_guard import METADATA, guarded
    from netsandbox.policy.ip import parse

    address = parse(str(denial.flag).split(" ")[1].rpartition(":")[0].strip("[]"))
    is_metadata = address is not None and guarded(address) == METADATA
    return ", a service of the cloud that gives out credentials" if is_metadata else ""


def _advice(reason: str, where: str | None) -> str:
    """What helps where no option allows it as it is. The texts speak to the command, these lines to the user."""
    from netsandbox.policy.explain import TEXTS

    advice = TEXTS.get(reason, ("", ""))[1].replace("the user can ", "").replace(" HOST", f" {where}")
    return advice or "no option allows it; see `netsandbox audit show`"


def _network_advice() -> str:
    """The proxy of the user's variables is not used, since a project could have set them."""
    variable = next((name for name in PROXY_VARIABLES if os.environ.get(name)), None)
    if variable is None:
        return "check the name and the host's own network"
    return f'{variable} is not used by itself: to connect through it, write --upstream-proxy "${variable}"'


def file_denial_lines(denials: Iterable[FileDenial], *, succeeded: bool = False) -> list[str]:
    """A line for each option that would open a refused file. Start-up files of shells are only in the log, and so is
    what a command that *succeeded* did not need."""
    own = os.path.realpath(home())
    advice = Advice(own, os.path.realpath, own_paths)
    by_change: dict[Change, list[FileDenial]] = {}
    for denial in denials:
        is_told = denial.reason != reasons.MADE_LATER
        if is_told and not is_quiet(denial.path, own, denial.operation, succeeded=succeeded):
            by_change.setdefault(_change(denial, advice, several=True), []).append(denial)
    lines = [_file_line(group, advice, own) for group in by_change.values()]
    if len(lines) > MAX_FILE_LINES:
        rest = len(lines) - MAX_FILE_LINES
        lines = [*lines[:MAX_FILE_LINES], f"and {rest} more paths; see `netsandbox audit show --denied --event file`"]
    return lines


def _change(denial: FileDenial, advice: Advice, *, several: bool) -> Change:
    """What would allow it: an option, leaving out a rule, or nothing. The user's own answer is like a rule."""
    if denial.reason == reasons.DENIED_BY_USER:
        return denial.reason
    return denial.rule or advice.option(denial.path, denial.operation, denial.reason, several=several)


def _file_line(group: list[FileDenial], advice: Advice, own: str) -> str:
    """A line for the paths of a folder, or of a rule."""
    first, paths = group[0], {denial.path for denial in group}
    change = _change(first, advice, several=len(paths) > 1)
    doing = {"read": "reading", "execute": "executing"}.get(first.operation, "writing")
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    real = advice.real(first.path)
    link = f", a link to {shown_path(real)}," if real != first.path else ""
    what = f"denied {doing} {shown_path(first.path)}{link}{more}".rstrip(",")
    if change == reasons.DENIED_BY_USER:
        return f"{what} ({change}); your answer held for this session"
    if change is None and (instead := not_advised(real, own, first.operation)):
        return f"{what}; {instead}"
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


def configuration_lines(file: FileSettings, *, verbose: bool) -> list[str]:
    """Ignored settings are always reported; otherwise the user would look for a mistake elsewhere."""
    told = [*(f"profile {name}: {why}" for name, why in file.profiles), *file.notes] if verbose else []
    return [*told, *file.narrowed, *ignored_lines(file.ignored)]


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
