"""Notices before the command runs: how the session is set up (-v), and which options do less than they seem to. Each is
loaded for its option only."""

from __future__ import annotations

import os
import stat

from netsandbox_portmap.session_dial import HIDDEN, NOBODY, UNHEARD

from netsandbox.backends.linux.socket_diag import host_listeners
from netsandbox.cli.file_notices import BROKER, file_view_lines
from netsandbox.cli.notices import withheld_names
from netsandbox.config.profiles.profile_files import find, is_profile_file
from netsandbox.frozen import copy_with
from netsandbox.paths import short
from netsandbox.policy.decision import is_loopback_name
from netsandbox.policy.variables import Patterns
from netsandbox.session.session import WEAKER
from netsandbox.system import IS_LINUX, IS_MACOS
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from netsandbox_portmap.localhost_settings import HostPort

    from netsandbox.policy.policy import DomainRule, Policy
    from netsandbox.session.session_status import Status
    from netsandbox.settings import RunSettings

MAX_LINES = 5
HOSTS = "/etc/hosts"
TOOLS = {  # words that people write for the registries of a tool, and its profile
    **dict.fromkeys(("registry", "npm", "npmjs", "npx"), "node"),
    **dict.fromkeys(("pip", "pypi", "pipx"), "python"),
    **dict.fromkeys(("cargo", "crates"), "rust"),
    **dict.fromkeys(("maven", "mvn"), "java"),
    **dict.fromkeys(("gem", "rubygems", "bundler"), "ruby"),
    **dict.fromkeys(("github", "gitlab"), "git"),
}


def session_lines(policy: Policy, settings: RunSettings) -> list[str]:
    """What is allowed, asked and withheld, and how the session is found."""
    allowed = ["everything that is not denied"] if policy.mode == "online" else []
    if policy.mode == "filtered":  # in the other modes rules open nothing
        allowed = [rule.text for rule in policy.allow_domains] + [rule.text for rule in policy.allow_addresses]
    allowed += [f"port {door.reached} of {door.owner}" for door in settings.localhost.connect_host]
    lines = [f"mode {policy.mode}, allowed: {', '.join(allowed) or 'nothing'}"]
    if settings.backend == BROKER:
        lines.append(f"backend {BROKER}, which is weaker than namespaces: {WEAKER}")
    if settings.ask is not None:
        lines.append(f"other names wait {settings.ask} s for your answer; `netsandbox pending` lists the questions")
    if settings.ask_files is not None:
        lines.append(f"other files wait {settings.ask_files} s for your answer")
    if settings.name is None:
        where = "`netsandbox ps` shows the session's name and window"
    else:
        where = f"session {settings.name}, `netsandbox ps` shows its window"
    if settings.localhost.publishes:
        where += f", `netsandbox ports{' ' + settings.name if settings.name else ''}` where its servers are reached"
    lines += [where, *_unsigned_lines(), *file_view_lines(settings.files, settings.backend)]
    if withheld := withheld_names(settings):
        lines.append(f"not passed on: {', '.join(withheld)}; --pass-env NAME passes one")
    return lines


def _unsigned_lines() -> list[str]:
    if not IS_MACOS:
        return []
    from netsandbox.backends.seatbelt.signing import signed_parts

    why = signed_parts().unsigned
    reason = f"not signed by this Mac, so used as installed: {why}; if it kills them, sign them with codesign"
    return [f"helper and library are {reason}"] if why else []


def contradiction_lines(pairs: Iterable[tuple[DomainRule, DomainRule]], *, verbose: bool) -> list[str]:
    """A line for each allow that a deny closes. To deny a part of a profile is no mistake."""
    told = [pair for pair in pairs if verbose or not is_profile_file(pair[0].origin)]
    lines = [
        single_line(
            f"{short(allow.origin)}: {allow.text} is denied by {short(deny.origin)} ({deny.text}), which wins;"
            " leave one of them out"
        )
        for allow, deny in told[:MAX_LINES]
    ]
    if len(told) > MAX_LINES:
        lines.append(f"and {len(told) - MAX_LINES} more names are both allowed and denied; see `netsandbox explain`")
    return lines


def localhost_lines(rules: Iterable[DomainRule]) -> list[str]:
    """Rules for names of the loopback, which is the session's own and needs none."""
    return [
        single_line(
            f"{short(rule.origin)}: {rule.text} is the session's own, and needs no rule; to reach a server of this"
            f" machine use --connect-host {rule.ports[0] if rule.ports else 'PORT'}"
        )
        for rule in rules
        if is_loopback_name(rule.name)
    ]


def bare_name_lines(rules: Iterable[DomainRule]) -> list[str]:
    """Names without a dot: most are no hosts, but words for something that a profile opens. One that this machine has
    in its list of hosts is meant, and so is one with a port."""
    bare = [rule for rule in rules if rule.ports is None and not is_loopback_name(rule.name)]
    known = _listed_hosts() if bare else set()
    lines = []
    for rule in bare:
        if rule.name not in known:
            profile = TOOLS.get(rule.name) or (rule.name if find(rule.name) else None)
            instead = f"for its hosts use the profile: -p {profile}" if profile else "write the whole name"
            lines.append(single_line(f"{short(rule.origin)}: {rule.text} is one host called {rule.name}; {instead}"))
    return lines


def _listed_hosts() -> set[str]:
    try:
        with open(HOSTS, encoding="utf-8", errors="replace") as file:
            return {name.lower() for line in file for name in line.partition("#")[0].split()[1:]}
    except OSError:  # it has none; the line is said once too often
        return set()


def unset_lines(patterns: Sequence[str]) -> list[str]:
    """The variables of --pass-env that nobody has set."""
    names = [name.upper() for name in os.environb]
    lines = []
    for pattern in dict.fromkeys(patterns):
        found = Patterns((pattern,))
        if not any(map(found.matches, names)):
            what = "no variable here has such a name" if "*" in pattern else "this variable is not set here"
            lines.append(f"--pass-env {pattern}: {what}, so nothing is passed; set and export it, or leave it out")
    return lines


def unheard_lines(doors: Iterable[HostPort]) -> list[str]:
    """The ports of --connect-host at which no server of this machine or of the other session listens yet. Those of
    sessions are `checked_doors`."""
    if not IS_LINUX:
        return []
    doors = list(doors)
    try:
        taken = host_listeners() if any(door.session is None for door in doors) else ()
    except (OSError, ValueError):  # the kernel does not tell; a connection that fails says it later
        doors = [door for door in doors if door.session is not None]
        taken = ()
    return [
        f"--connect-host {door}: nothing listens at port {door.reached} of this machine's localhost yet, and the"
        f" command cannot listen there; for a server of the command use --publish {door.inside}"
        for door in doors
        if door.session is None and door.reached not in taken
    ] + [_session_line(door) for door in doors if door.reported]


def checked_doors(doors: tuple[HostPort, ...]) -> tuple[HostPort, ...]:
    """*doors*, each with the reason why the other session does not offer it yet. The notice when the command connects
    is left out for that reason."""
    if not IS_LINUX or all(door.session is None for door in doors):
        return doors
    from netsandbox.session.sessions_client import live_sessions

    sessions = {status["name"]: status for status in live_sessions()}
    return tuple(
        door if door.session is None else copy_with(door, reported=_missing(door.reached, sessions.get(door.session)))
        for door in doors
    )


def _missing(port: int, status: Status | None) -> str:
    """Why the port of a session is not reached now; empty if it is."""
    if status is None:
        return NOBODY
    if status.get("publishes") is False:
        return HIDDEN
    return "" if any(each["port"] == port for each in status["ports"]) else UNHEARD


def _session_line(door: HostPort) -> str:
    session, port = door.session, door.reached
    texts = {
        NOBODY: f"no session is called {session} yet; start it with `netsandbox run --name {session}`",
        HIDDEN: f"the session {session} does not publish port {port}; start it with --publish {port}",
        UNHEARD: f"the session {session} publishes no port {port} yet; start its server there",
    }
    return f"--connect-host {door}: {texts[door.reported]}"


def no_socket_lines(paths: Iterable[str]) -> list[str]:
    """The paths of --allow-unix-socket at which there is no socket. Those that are not absolute are an error later."""
    lines = []
    for path in dict.fromkeys(path for path in paths if path.startswith("/")):
        try:
            what = "" if stat.S_ISSOCK(os.stat(path).st_mode) else "this is not a socket"
        except (OSError, ValueError):
            what = "nothing is there yet"
        if what:
            lines.append(
                single_line(f"--allow-unix-socket {short(path)}: {what}; start its server first, or correct the path")
            )
    return lines
