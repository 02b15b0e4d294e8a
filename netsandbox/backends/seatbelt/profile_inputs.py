"""The profile settings of one session from its policy, paths and ports, or from placeholders for these.

Both `run` and `run --dry-run` use this, so that the printed profile is the applied one.
"""

from __future__ import annotations

import os

from netsandbox_portmap.reservation import HOST_LOCKS

from netsandbox.backends.seatbelt.case_paths import CasePaths, is_same_name
from netsandbox.backends.seatbelt.profile.profile_settings import (
    DOORS,
    NOTHING,
    NetworkSettings,
    OwnPaths,
    ProfileSettings,
    resolve,
)
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.backends.seatbelt.profile.switches import turned
from netsandbox.backends.seatbelt.project_paths import GitPaths, own_code, programs_on_path, split_missing
from netsandbox.backends.seatbelt.signing import signed_home
from netsandbox.errors import UsageError
from netsandbox.frozen import frozen
from netsandbox.paths import packages, state_home
from netsandbox.policy.file_rules import OPEN, PROJECT, PathRule, ResolvedPath, check_no_link, check_straight, is_within
from netsandbox.policy.home_paths import OF_MAC, moves
from netsandbox.policy.policy import FILTERED, ONLINE
from netsandbox.runtime.links import links_of_loop, links_to, made_later
from netsandbox.runtime.project import find_project
from netsandbox.runtime.protection import hidden_homes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from netsandbox.policy.file_rules import FileRules
    from netsandbox.policy.policy import Policy
    from netsandbox.settings import Command, RunSettings

ROTATED = 6  # logs besides the newest
TERMINALS = "/dev/tty"
BUILT_IN = ("/tmp", "/var/tmp")  # noqa: S108 (temporary folders whose names programs have built in)


@frozen
class SessionPorts:
    """The window and the doors as ports of localhost; 0 means none."""

    strategy: str
    base: int
    count: int
    http: int
    dns: int
    requests: int


def has_door(policy: Policy) -> bool:
    """Whether anything may leave; otherwise the profile opens no door."""
    return policy.mode in (FILTERED, ONLINE)


@frozen
class ProfilePaths:
    """Paths of one session: its log, its port map (empty: none), and its own temporary folder (empty: it uses the
    user's)."""

    log: str
    port_map: str
    temporary: str = ""


def profile_text(
    policy: Policy, settings: RunSettings, command: Command, ports: SessionPorts, paths: ProfilePaths
) -> str:
    """The settings that the kernel must enforce, or an error."""
    environment = command.environment
    working, home = working_folder(), _text(environment, b"HOME")
    files, known = settings.files, CasePaths()
    temporary = _temporary(environment, paths.temporary)
    projects = writable_folders(files.mode, known(working), known(home))
    _check_straight(files, _sockets(policy), (*(projects or (working,)), *temporary), known)
    path = _text(environment, b"PATH")
    written = (*projects, *map(known, _paths(files.allow_write)))
    found = (
        *(program for program in programs(command.words[0], path) if _is_straight(program, written)),
        *programs_on_path(path, known(home), (*written, state_home()), known),
    )
    planned = ProfileSettings(
        working=working,
        home=home,
        mode=files.mode,
        projects=projects,
        temporary=temporary,
        shown=_shown(files, home, known),
        write=_paths((*files.allow_write, *files.caches)),
        deny=_paths(files.deny_read),
        protect=own_code(),
        kept=() if files.mode == OPEN else tuple(GitPaths(projects, known(home)).pairs),
        deny_write=tuple(split_missing(known(rule.path)) for rule in files.deny_write),
        executables=(*found, *_paths(files.allow_execute)),
        terminal=_terminal(command.stdio[0]),
        own=_own(settings, paths.log, paths.port_map),
        network=_network(policy, settings, ports),
        switches=turned(settings.switches),
        raw=settings.raw,
        moves=moves(_texts(environment), home, working),
    )
    return session_profile(resolve(planned, known, os.path.isdir))


def writable_folders(mode: str, working: str, home: str) -> tuple[str, ...]:
    """The project of a session in *working*, which is a real path; empty if it is the home, or holds it."""
    if mode != PROJECT:
        return (working,)
    project = find_project(working, home)
    return tuple(filter(None, (project.folder, project.git))) if project is not None else ()


def _is_straight(path: str, written: Iterable[str]) -> bool:
    """Whether no link on the way to a program lies where commands write, who may have made it to open its target."""
    folders = tuple(written)
    return not any(is_within(link, folder) for link in links_of_loop(path) for folder in folders)


def _check_straight(
    files: FileRules, sockets: Iterable[PathRule], usual: Iterable[str], known: Callable[[str], str]
) -> None:
    """No path is opened through a link that lies where the command writes, or that an earlier one may have left."""
    written = [path for path in _paths((*files.allow_write, *files.caches)) if known(path) == path]
    writable = [*map(known, usual), *written]
    for rule in (*files.allow_read, *files.allow_write, *files.caches, *files.copies, *files.allow_execute, *sockets):
        place = ResolvedPath(rule.path, known(rule.path))
        if place.name != place.real:
            links = links_to(place.name, place.real, is_same_name)
            check_straight(place, f"{rule.origin}:", links, writable)
            check_no_link(place, f"{rule.origin}:", made_later(rule.origin, links))


def _paths(rules: Iterable[PathRule]) -> tuple[str, ...]:
    return tuple(rule.path for rule in rules)


def _sockets(policy: Policy) -> list[PathRule]:
    return [PathRule(path, "--allow-unix-socket") for path in policy.allow_unix_sockets]


def _shown(files: FileRules, home: str, known: Callable[[str], str]) -> tuple[str, ...]:
    """The shown paths without those that a deny closes, since the deny wins. A place of secrets to be written is
    shown too if it is named itself; those in a wider folder stay hidden."""
    denied = [known(path) for path in _paths(files.deny_read)]
    secrets = {f"{home}/{name}" for name in OF_MAC} if files.allow_write else ()
    named = [path for path in _paths(files.allow_write) if path in secrets]
    opened = (*_paths((*files.allow_read, *files.copies)), *named)
    return tuple(path for path in opened if not any(is_within(known(path), other) for other in denied))


def _network(policy: Policy, settings: RunSettings, ports: SessionPorts) -> NetworkSettings:
    return NetworkSettings(
        mode=DOORS if has_door(policy) else NOTHING,
        http_door=ports.http,
        dns_door=ports.dns,
        requests_door=ports.requests,
        strategy=ports.strategy,
        base=ports.base,
        count=ports.count,
        connect_host=tuple(door.inside for door in settings.localhost.connect_host),
        unix_sockets=tuple(policy.allow_unix_sockets),
    )


def _own(settings: RunSettings, log: str, port_map: str) -> OwnPaths:
    return OwnPaths(
        hidden=(*hidden_homes(), HOST_LOCKS, *_logs(settings, log)),
        sealed=(*packages(), signed_home(), *settings.configs, *settings.written),
        port_map=port_map,
    )


def _logs(settings: RunSettings, log: str) -> tuple[str, ...]:
    """The state folder holds the log, unless the user placed it elsewhere: in a file, or in a folder of many logs."""
    if not settings.audit_log:
        return ()
    if log != os.path.abspath(settings.audit_log):
        return (os.path.dirname(log),)
    return (log, *(f"{log}.{number}" for number in range(1, ROTATED + 1)))


def temporary_folder(environment: Mapping[bytes, bytes], session: str) -> str:
    """The path of a session's own temporary folder, in the user's. It is short: a socket's path has 103 bytes."""
    above = os.path.realpath(_text(environment, b"TMPDIR") or "/tmp")  # noqa: S108
    return os.path.join(above, f"ns-{session.rpartition('-')[2]}")


def _temporary(environment: Mapping[bytes, bytes], own: str) -> tuple[str, ...]:
    """*own*, or the user's; and those of BUILT_IN, in whose place nothing can be put."""
    named = own or _text(environment, b"TMPDIR") or "/tmp"  # noqa: S108 (the user's, for the session to use)
    home = os.path.realpath(_text(environment, b"HOME"))
    built_in = [path for path in BUILT_IN if not is_within(home, os.path.realpath(path))]
    return tuple(dict.fromkeys((named, *built_in)))


def programs(command: str, path: str) -> tuple[str, ...]:
    """The command's own path, wherever it is: the user decided that it may run."""
    if "/" in command:
        return (os.path.abspath(command),) if os.path.isfile(command) else ()
    for folder in path.split(":"):
        found = os.path.join(folder, command)
        if folder.startswith("/") and os.access(found, os.X_OK) and os.path.isfile(found):
            return (found,)
    return ()


def _terminal(stdin: int) -> str:
    try:
        name = os.ttyname(stdin)
    except OSError:
        return ""
    return name if name.startswith(TERMINALS) else ""


def _texts(environment: Mapping[bytes, bytes]) -> dict[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}


def _text(environment: Mapping[bytes, bytes], name: bytes) -> str:
    return os.fsdecode(environment.get(name, b""))


def working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise UsageError("the working directory does not exist any more; change to one that does") from None
