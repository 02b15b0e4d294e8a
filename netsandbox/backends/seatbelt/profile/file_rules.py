"""The rules for files that a session reads, writes and runs. Pure.

Order and operations give the same result under every model of precedence: allow rules come first, deny rules after
them, each deny on every operation that an allow names (a rule on a more specific operation has been seen to win), and
each with a filter. A rename counts as a write of the moved path, so the folders above protected paths are pinned
(attacks 140, 149).
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.profile import any_case
from netsandbox.backends.seatbelt.profile.mac_paths import (
    CACHES,
    RUN_AT_HOME,
    RUN_IN_PROJECT,
    SETTINGS,
    above,
    ancestors,
    below,
    checked,
    secrets,
    toolchains,
)
from netsandbox.backends.seatbelt.profile.sbpl_string import quoted
from netsandbox.errors import UsageError
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from netsandbox.backends.seatbelt.profile.profile_settings import ProfileSettings

LOOK = "file-read-metadata"
READ = "file-read* file-map-executable"
WRITE = "file-read* file-write* file-map-executable"
TERMINAL = "file-read* file-write-data file-ioctl"
NEVER_WRITTEN = "file-write* file-write-data"
NEVER_MOVED = "file-write-unlink"
NEVER_REACHED = "file-read* file-read-metadata file-write* file-write-data file-map-executable file-ioctl process-exec*"
MAPPED = "file-read* file-read-metadata"
MAX_BYTES = 16 << 20  # of all paths, each multiplied by its depth
KINDS = {
    "working": "working directory",
    "temporary": "temporary folder",
    "read": "path to read",
    "shown": "path to read",
    "write": "path to write",
    "executables": "program",
    "deny": "path to deny",
    "protect": "path to protect",
}
OPENED = ("working", "temporary", "read", "shown", "write", "executables")
OPENED_WHOLE = ("working", "temporary", "write")


def rule(action: str, operations: str, filter_: str, paths: Iterable[str], why: str) -> str:
    """One rule on all *paths*, in order and without duplicates, after a comment; empty if there are none."""
    filters = "\n".join(f"  ({filter_} {quoted(path)})" for path in sorted(set(paths)))
    return f"; {why}\n({action} {operations}\n{filters})\n" if filters else ""


def allowed_files(settings: ProfileSettings) -> str:
    """What may be read, written and run besides the system."""
    tools = toolchains(settings.home)
    own = settings.own
    read = (
        *tools,
        *below(settings.home, SETTINGS),
        *settings.read,
        *settings.shown,
        *settings.executables,
        *own.sealed,
    )
    write = written(settings)
    runs = (*tools, *settings.executables, *write)
    named = (*read, *write, *settings.links, *settings.network.unix_sockets)
    looks = (*above((*named, settings.terminal)), *settings.links, *settings.network.unix_sockets)
    return "\n".join(
        (
            rule("allow", LOOK, "literal", looks, "The folders above what follows, and the links that lead there."),
            rule("allow", READ, "subpath", read, "The user's toolchains and settings, and what is to be read."),
            rule("allow", WRITE, "subpath", write, "The working directory and what else is to be written."),
            rule("allow", "process-exec*", "subpath", runs, "Programs of all these may be run."),
            rule("allow", TERMINAL, "literal", filter(None, (settings.terminal,)), "The session's own terminal."),
        )
    )


def denied_files(settings: ProfileSettings) -> str:
    """What stays closed under every allow rule, then the one file of ours that is readable."""
    own, project = settings.own, below(settings.working, RUN_IN_PROJECT)
    sealed = (*own.sealed, *settings.protect, *settings.network.unix_sockets, *filter(None, (own.port_map,)))
    run_later = (*below(settings.home, RUN_AT_HOME), *project)
    holders = [folder for folder in above(project) if folder.startswith(f"{settings.working}/")]
    never = closed(settings)
    pinned = _movable((*sealed, *run_later, *never, *own.hidden), written(settings))
    return "\n".join(
        (
            rule("deny", NEVER_WRITTEN, "subpath", sealed, "Ours, or open for reading only: never written."),
            rule("deny", NEVER_WRITTEN, "subpath", run_later, "What the host runs or believes later, unconfined."),
            rule("deny", NEVER_WRITTEN, "literal", holders, "Their folders: neither made as a link nor replaced."),
            _in_any_case(settings.working),
            rule("deny", NEVER_MOVED, "literal", pinned, "Nothing above a boundary is moved away, to be replaced."),
            rule("deny", NEVER_REACHED, "subpath", never, "Secrets; these win over every allowance."),
            rule("deny", NEVER_REACHED, "subpath", own.hidden, "Ours: state, audit log, control socket."),
            rule("allow", MAPPED, "literal", filter(None, (own.port_map,)), "The map of ports, to be read."),
        )
    )


def _in_any_case(working: str) -> str:
    """The files that the host runs later, and their folders, in any case, for names that do not exist yet."""
    holders = tuple({name.rpartition("/")[0] for name in RUN_IN_PROJECT if "/" in name})
    found = [*any_case.filters(working, RUN_IN_PROJECT, any_case.WITHIN)]
    found += any_case.filters(working, holders, any_case.ITSELF)
    text = "\n".join(found)
    return f"; The same names in other cases: a disk may take them for these.\n(deny {NEVER_WRITTEN}\n{text})\n"


def _movable(boundaries: Iterable[str], roots: Iterable[str]) -> list[str]:
    """The writable roots, and the folders above *boundaries* in them; other folders cannot be moved anyway."""
    inside = set(roots)
    return sorted({folder for folder in (*above(boundaries), *above(inside)) if _place(folder, inside)} | inside)


def _place(path: str, places: Container[str]) -> str | None:
    """The one of *places* that holds *path*. It checks each folder above, since there may be thousands of places."""
    return next((folder for folder in (path, *ancestors(path)) if folder in places), None)


def written(settings: ProfileSettings) -> tuple[str, ...]:
    """Every folder that the session may write."""
    caches = below(settings.home, CACHES) if "tool-caches" in settings.switches else ()
    return (settings.working, *settings.temporary, *settings.write, *caches)


def closed(settings: ProfileSettings) -> tuple[str, ...]:
    """Paths that are neither read nor written under any rule: secrets that the user did not lift, and denied paths."""
    kept = (path for path in secrets(settings.home) if path not in settings.lifted)
    return (*kept, *settings.deny)


def check_files(settings: ProfileSettings) -> None:
    """Raise an error for a promise that cannot be kept; nothing is corrected silently."""
    own = settings.own
    if checked(settings.home, "home directory") == "/":
        raise UsageError("the home directory is the whole disk; set HOME to the user's own folder")
    for path in (*own.hidden, *own.sealed, *filter(None, (own.port_map, settings.terminal))):
        checked(path, "path")
    if settings.terminal and not settings.terminal.startswith("/dev/tty"):
        raise UsageError(f"{settings.terminal!a} is no terminal; leave it out")
    shut = {*closed(settings), *own.hidden}
    left = MAX_BYTES
    for field, what in KINDS.items():
        named = vars(settings)[field]
        for path in (named,) if isinstance(named, str) else named:
            checked(path, what)
            left -= len(path) * path.count("/")  # the folders above it are named too
            if field in OPENED_WHOLE and is_within(settings.home, path):
                raise UsageError(
                    f"the {what} {path!a} holds the whole home directory and is not opened; name a folder inside it"
                )
            if field in OPENED and (found := _place(path, shut)):
                raise UsageError(f"the {what} {path!a} is within {found!a}, which stays closed; use another folder")
    if left < 0:
        raise UsageError("there are too many long paths for a Seatbelt profile; name the folders above them instead")
