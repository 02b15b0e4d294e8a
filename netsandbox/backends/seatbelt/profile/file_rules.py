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
from netsandbox.policy.file_rules import OPEN, PROJECT, is_within

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
    "projects": "project",
    "temporary": "temporary folder",
    "read": "path to read",
    "shown": "path to read",
    "write": "path to write",
    "executables": "program",
    "deny": "path to deny",
    "protect": "path to protect",
}
OPENED = ("working", "projects", "temporary", "read", "shown", "write", "executables")
OPENED_WHOLE = ("projects", "temporary", "write")
# The user's other terminals and the disks stay closed in every mode.
WHOLE_DISK = """  (require-all
    (subpath "/")
    (require-not
      (subpath "/dev")))"""


def rule(action: str, operations: str, filter_: str, paths: Iterable[str], why: str) -> str:
    """One rule on all *paths*, in order and without duplicates, after a comment; empty if there are none."""
    filters = "\n".join(f"  ({filter_} {quoted(path)})" for path in sorted(set(paths)))
    return f"; {why}\n({action} {operations}\n{filters})\n" if filters else ""


def allowed_files(settings: ProfileSettings) -> str:
    """What may be read, written and run besides the system; everything else is closed (INV-12)."""
    tools = toolchains(settings.home)
    own = settings.own
    read = (
        *tools,
        *below(settings.home, SETTINGS),
        *below(settings.home, CACHES),
        *settings.read,
        *settings.shown,
        *settings.executables,
        *own.sealed,
    )
    write = written(settings)
    runs = (*tools, *settings.executables, *write)
    named = (*read, *write, *settings.links, *settings.network.unix_sockets, settings.working)
    looks = (*above((*named, settings.terminal)), *settings.links, *settings.network.unix_sockets, settings.working)
    return "\n".join(
        (
            rule("allow", LOOK, "literal", looks, "The folders above what follows, and the links that lead there."),
            rule("allow", READ, "subpath", read, "The user's toolchains and settings, and what is to be read."),
            rule("allow", WRITE, "subpath", write, "The project and what else is to be written."),
            rule("allow", "process-exec*", "subpath", runs, "Programs of all these may be run."),
            _whole_disk(settings.mode),
            rule("allow", TERMINAL, "literal", filter(None, (settings.terminal,)), "The session's own terminal."),
        )
    )


def _whole_disk(mode: str) -> str:
    """The modes besides `project` open every file for reading, `open` for writing too."""
    if mode == PROJECT:
        return ""
    operations = WRITE if mode == OPEN else READ
    return (
        f"; The mode {mode}: the whole disk but devices.\n(allow {operations}\n{WHOLE_DISK})\n"
        f"; Its programs too.\n(allow process-exec*\n{WHOLE_DISK})\n"
    )


def denied_files(settings: ProfileSettings) -> str:
    """What stays closed under every allow rule, then the one file of ours that is readable."""
    own, write = settings.own, written(settings)
    sealed = (*own.sealed, *settings.protect, *settings.network.unix_sockets, *filter(None, (own.port_map,)))
    kept = _kept(settings)
    run_later = () if settings.mode == OPEN else below(settings.home, RUN_AT_HOME)
    holders = [folder + between for folder, name in kept for between in above([f"/{name}"])]
    never = closed(settings)
    inside = [f"{folder}/{name}" for folder, name in kept]
    pinned = _movable((*sealed, *run_later, *inside, *never, *own.hidden), ("/",) if settings.mode == OPEN else write)
    return "\n".join(
        (
            rule("deny", NEVER_WRITTEN, "subpath", sealed, "Ours, or open for reading only: never written."),
            _unless_named((*run_later, *inside), settings),
            rule("deny", NEVER_WRITTEN, "literal", holders, "Their folders: neither made as a link nor replaced."),
            _in_any_case(kept, settings),
            rule("deny", NEVER_MOVED, "literal", pinned, "Nothing above a boundary is moved away, to be replaced."),
            rule("deny", NEVER_REACHED, "subpath", never, "Secrets; these win over every allowance."),
            rule("deny", NEVER_REACHED, "subpath", own.hidden, "Ours: state, audit log, control socket."),
            rule("allow", MAPPED, "literal", filter(None, (own.port_map,)), "The map of ports, to be read."),
        )
    )


def _kept(settings: ProfileSettings) -> tuple[tuple[str, str], ...]:
    """What stays read-only inside of what is writable: pairs of a folder and a name in it, which may be missing."""
    if settings.mode == OPEN:
        return settings.deny_write
    folders = dict.fromkeys((*_projects(settings), *(() if settings.projects == () else (settings.working,))))
    known = tuple((folder, name) for folder in folders for name in RUN_IN_PROJECT)
    named = tuple(pair for pair in (*known, *settings.kept) if "/".join(pair) not in settings.write)
    return (*named, *settings.deny_write)


def _unless_named(paths: Iterable[str], settings: ProfileSettings) -> str:
    """The rule for what the host runs later. The user opens such a path, or one below it, by its name."""
    denied = {"/".join(pair) for pair in settings.deny_write}
    filters = [
        _without(f"(subpath {quoted(path)})", path, () if path in denied else settings.write)
        for path in sorted(set(paths))
        if path in denied or path not in settings.write
    ]
    return _deny("What the host runs or believes later, unconfined, and what the user closed.", filters)


def _in_any_case(kept: Iterable[tuple[str, str]], settings: ProfileSettings) -> str:
    """The same for names that do not exist yet, in any case, with the folders between."""
    found: set[str] = set()
    for folder, name in kept:
        (filter_,) = any_case.filters(folder, (name,), any_case.WITHIN)
        write = () if (folder, name) in settings.deny_write else settings.write
        found.add(_without(filter_.strip(), f"{folder}/{name}", write))
        if "/" in name:
            between = tuple(path[1:] for path in above([f"/{name}"]))
            found.update(each.strip() for each in any_case.filters(folder, between, any_case.ITSELF))
    return _deny("The same names in other cases: a disk may take them for these.", sorted(found))


def _without(filter_: str, path: str, write: Iterable[str]) -> str:
    """*filter_* for *path*, but not for those of *write* that are below it."""
    open_ = [each for each in sorted(set(write)) if each != path and is_within(each, path)]
    if not open_:
        return filter_
    parts = "".join(f"\n    (require-not\n      (subpath {quoted(each)}))" for each in open_)
    return f"(require-all\n    {filter_}{parts})"


def _deny(why: str, filters: list[str]) -> str:
    lines = "\n".join(f"  {each}" for each in filters)
    return f"; {why}\n(deny {NEVER_WRITTEN}\n{lines})\n" if lines else ""


def _movable(boundaries: Iterable[str], roots: Iterable[str]) -> list[str]:
    """The writable roots, and the folders above *boundaries* in them; other folders cannot be moved anyway."""
    inside = set(roots)
    if "/" in inside:
        return above(boundaries)
    return sorted({folder for folder in (*above(boundaries), *above(inside)) if _place(folder, inside)} | inside)


def _place(path: str, places: Container[str]) -> str | None:
    """The one of *places* that holds *path*. It checks each folder above, since there may be thousands of places."""
    return next((folder for folder in (path, *ancestors(path)) if folder in places), None)


def written(settings: ProfileSettings) -> tuple[str, ...]:
    """Every folder that the session may write."""
    caches = below(settings.home, CACHES) if "tool-caches" in settings.switches else ()
    return (*_projects(settings), *settings.temporary, *settings.write, *caches)


def _projects(settings: ProfileSettings) -> tuple[str, ...]:
    return (settings.working,) if settings.projects is None else settings.projects


def closed(settings: ProfileSettings) -> tuple[str, ...]:
    """Paths that are neither read nor written under any rule: secrets that the user did not lift, and denied paths."""
    kept = (path for path in secrets(settings.home) if path not in settings.lifted)
    return (*kept, *settings.deny)


def check_files(settings: ProfileSettings) -> None:
    """Raise an error for a promise that cannot be kept; nothing is corrected silently."""
    own = settings.own
    if checked(settings.home, "home directory") == "/":
        raise UsageError("the home directory is the whole disk; set HOME to the user's own folder")
    pairs = ("/".join(pair) for pair in (*settings.kept, *settings.deny_write))
    for path in (*own.hidden, *own.sealed, *pairs, *filter(None, (own.port_map, settings.terminal))):
        checked(path, "path")
    if settings.terminal and not settings.terminal.startswith("/dev/tty"):
        raise UsageError(f"{settings.terminal!a} is not a terminal; leave it out")
    shut = {*closed(settings), *own.hidden}
    left = MAX_BYTES
    for field, what in KINDS.items():
        named = _projects(settings) if field == "projects" else vars(settings)[field]
        for path in (named,) if isinstance(named, str) else named:
            checked(path, what)
            left -= len(path) * path.count("/")  # the folders above it are named too
            if field in OPENED_WHOLE and settings.mode != OPEN and is_within(settings.home, path):
                raise UsageError(
                    f"the {what} {path!a} holds the whole home directory and is not opened; name a folder inside it"
                )
            if field in OPENED and (found := _place(path, shut)):
                raise UsageError(f"the {what} {path!a} is within {found!a}, which stays closed; use another folder")
    if left < 0:
        raise UsageError("there are too many long paths for a Seatbelt profile; name the folders above them instead")
