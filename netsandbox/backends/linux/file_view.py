"""The file rules of a session as paths of this host: what is hidden, and where writing is allowed.

Everything is looked up before the command runs, with links followed once and one `stat` for each secret path that its
folder lists. A failed lookup is an error (INV-1).

A mount covers one name, so a path that has others (`mount_names`) is covered there too. Sessions of root do not see
disk devices either, since these give access below every file system. Other users have no access to these devices,
except through a group such as `disk`.
"""

from __future__ import annotations

import errno
import os
import stat

from netsandbox.backends.linux.mount_names import known_mounts, other_names
from netsandbox.errors import HostError, UsageError
from netsandbox.frozen import frozen
from netsandbox.paths import home, working_folder
from netsandbox.policy import home_paths
from netsandbox.policy.file_rules import (
    OPEN,
    ResolvedPath,
    check_few,
    check_hidden,
    check_kept,
    check_no_link,
    check_open,
    check_shown,
    check_straight,
    check_writable,
    hidden,
    is_within,
    outermost,
)
from netsandbox.policy.home_paths import moved_secrets
from netsandbox.policy.shown_files import SYSTEM_SECRETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from netsandbox.policy.file_rules import FileRules, PathRule

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 (the user's, for the session to use)
KEPT = ("/dev",)  # devices; mounts in it keep their own rules
MAX_LINK_DEPTH, MAX_LINKED_ENTRIES = 1, 512  # in a secret folder; browsers have thousands of files below
NOWHERE = (errno.ELOOP, errno.ENAMETOOLONG)  # links that a command may leave behind: circular, or to an impossible path


@frozen
class FileView:
    """`writable` is None if writing is not restricted."""

    folders: tuple[str, ...] = ()  # appear empty
    files: tuple[str, ...] = ()  # cannot be opened
    writable: tuple[str, ...] | None = None
    disks: tuple[str, ...] = ()  # and other devices to hide
    links: tuple[str, ...] = ()  # lead to hidden paths
    read_only: tuple[str, ...] = ()  # of what would be writable


def file_view(rules: FileRules, environment: Mapping[bytes, bytes]) -> FileView:
    """*environment* is the command's. The places of secrets come from our own environment."""
    check_few(rules.deny_read)
    working = working_folder()
    allowed = [(rule, place) for rule in (*rules.allow_read, *rules.copies) if (place := _place(rule))]
    endless: list[str] = []
    denied = [place for rule in rules.deny_read if (place := _place(rule, endless))]
    shown = [place for _, place in allowed]
    kept = tuple(place.real for rule in rules.deny_write if (place := _place(rule)))
    secrets = list(secret_places(rules, working, endless))
    written = [place for rule in rules.allow_write if (place := _place(rule))]
    shown += [place for place in written if any(place.real == secret.real for secret in secrets)]  # named itself
    closed = check_hidden(hidden(secrets, shown, denied))
    for rule, place in allowed:
        check_shown(rule, place, closed, denied)
    folders, files = _sorted(everywhere(closed))
    if working is not None:
        check_open(working, "the working folder", closed)
    writable = None
    if rules.mode != OPEN:
        writes = (*rules.allow_write, *used_caches(rules, environment, working))
        writable = check_writable(_writable(writes, working, environment, closed))
    links = tuple(dict.fromkeys((*_loops(endless), *(link for place in (*secrets, *denied) for link in _links(place)))))
    return FileView(folders, files, writable, _closed_devices(rules.devices), links, check_kept(kept))


def used_caches(rules: FileRules, environment: Mapping[bytes, bytes], working: str | None) -> Iterator[PathRule]:
    """The caches, where variables move them: a folder that exists and does not hold the working folder."""
    if not rules.caches:
        return
    from netsandbox.policy.tool_caches import followed

    known = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    for _, rule in followed(rules.caches, known, home()):
        is_moved = rule not in rules.caches
        if not is_moved or (os.path.isdir(rule.path) and not is_within(working or "/", os.path.realpath(rule.path))):
            yield rule


def second_names(view: FileView) -> list[str]:
    """Hidden files that have another name by a hard link. A cover hides one name, and no call lists the others."""
    below = (entry.path for folder in view.folders for entry in _entries(folder)[:MAX_LINKED_ENTRIES])
    return [path for path in (*view.files, *below) if _has_second_name(path)]


def _has_second_name(path: str) -> bool:
    try:
        state = os.lstat(path)
    except OSError:  # it is gone
        return False
    return stat.S_ISREG(state.st_mode) and state.st_nlink > 1


def always_writable(environment: Mapping[bytes, bytes]) -> tuple[str, ...]:
    """Where a session may write besides the paths of `allow_write`, if that is set; *environment* is the command's."""
    return _writable((), working_folder(), environment, ())


def secret_places(rules: FileRules, working: str | None, endless: list[str]) -> Iterator[ResolvedPath]:
    """The secret paths that exist; *endless* collects links that lead nowhere."""
    own = home()
    held = (own, working or own)
    named = [rule.path for rule in (*rules.allow_read, *rules.allow_write, *rules.caches)]
    secrets = (*home_paths.OF_LINUX, *home_paths.closed_agents(map(os.path.normpath, named), own))
    names = [f"{own}/{name}" for name in _listed(own, secrets)]
    others = moved_secrets(secrets, dict(os.environ), *held)
    system = (path for path in SYSTEM_SECRETS if os.access(path, os.R_OK))
    for name in (*names, *home_paths.LINUX_SYSTEM, *system, *others):
        mode = _mode(name, endless)
        if mode is not None:
            yield ResolvedPath(name, os.path.realpath(name))
            if stat.S_ISDIR(mode):
                yield from _linked_secrets(name, tuple(map(os.path.realpath, held)))


def _linked_secrets(folder: str, held: tuple[str, ...]) -> Iterator[ResolvedPath]:
    """Where links in a secret folder lead, such as `~/.ssh/id_rsa -> ~/keys/id_rsa`: files, and folders of the home.
    What holds the home or the working folder (*held*) cannot be hidden as a whole."""
    for path in _links_below(folder):
        real = os.path.realpath(path)
        if not os.path.exists(real) or any(is_within(each, real) for each in held):
            continue
        if is_within(real, held[0]) or os.path.isfile(real):
            yield ResolvedPath(path, real)


def _links_below(folder: str) -> Iterator[str]:
    """The links in *folder* and in its folders."""
    waiting, seen = [(0, folder)], 0
    while waiting:
        depth, here = waiting.pop()
        for entry in _entries(here):
            seen += 1
            if seen > MAX_LINKED_ENTRIES:
                return
            if entry.is_symlink():
                yield entry.path
            elif depth < MAX_LINK_DEPTH and entry.is_dir(follow_symlinks=False):
                waiting.append((depth + 1, entry.path))


def _listed(own: str, names: Sequence[str]) -> Sequence[str]:
    """Those of *names* that may exist. Most do not, and the listings of the two folders show that at once."""
    for folder in ("", ".config/"):
        try:
            there = {_plainly(name) for name in os.listdir(f"{own}/{folder}")}
        except OSError:  # the `stat` of each path will report the error
            continue
        names = [
            name
            for name in names
            if not name.startswith(folder) or name[len(folder) :].partition("/")[0].casefold() in there
        ]
    return names


def _plainly(name: str) -> str:
    """Some disks ignore case and invisible characters (ext4 with casefold)."""
    folded = name.casefold()
    return folded if folded.isascii() else "".join(filter(str.isascii, folded))


def _place(rule: PathRule, endless: list[str] | None = None) -> ResolvedPath | None:
    """None: its path does not exist."""
    if not rule.path.startswith("/"):
        raise UsageError(f"{rule.origin}: {rule.path!a} is not absolute; write it from / on")
    return None if _mode(rule.path, endless) is None else _settled(rule.path)


def _settled(path: str) -> ResolvedPath:
    """*path* without `..`, where no link precedes it."""
    real = os.path.realpath(path)
    plain = os.path.normpath(path)
    return ResolvedPath(plain if os.path.realpath(plain) == real else path, real)


def _links(place: ResolvedPath) -> tuple[str, ...]:
    if place.name == place.real:
        return ()
    from netsandbox.runtime.links import links_to

    return links_to(place.name, place.real)


def _loops(endless: list[str]) -> tuple[str, ...]:
    """The links from these places that lead nowhere. They are held, so that they cannot lead to a secret later."""
    if not endless:
        return ()
    from netsandbox.runtime.links import links_of_loop

    return tuple(link for path in endless for link in links_of_loop(path))


def _mode(path: str, endless: list[str] | None = None) -> int | None:
    """None: nothing exists there, or nothing that the command could reach."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError) and not _could_be_opened(path):
            return None
        if isinstance(error, OSError) and error.errno in NOWHERE:
            if endless is not None:
                endless.append(path)
            return None
        reason = getattr(error, "strerror", None) or str(error)
        raise HostError(
            f"cannot look at {path}: {reason}; it could not be hidden. Give yourself the right to, or move it"
        ) from None


def _could_be_opened(path: str) -> bool:
    """Whether we own the folder that denies access: the command could change its mode."""
    while path != "/":
        path = os.path.dirname(path)
        try:
            return os.stat(path).st_uid == os.geteuid()
        except OSError:
            continue
    return False


def everywhere(closed: tuple[str, ...]) -> tuple[str, ...]:
    """*closed* under every name in this mount namespace."""
    if not closed:
        return closed
    mounts = known_mounts()
    names = [name for path in closed for name, known in other_names(path, mounts) if _is_same(name, known)]
    return outermost((*closed, *names))


def _is_same(name: str, known: str) -> bool:
    try:
        return os.path.samefile(name, known)
    except OSError:  # nothing exists there, or nothing that the command could reach
        return False


def _sorted(paths: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    folders: list[str] = []
    files: list[str] = []
    for path in paths:
        mode = _mode(path)
        if mode is not None:
            (folders if stat.S_ISDIR(mode) else files).append(path)
    return tuple(folders), tuple(files)


def _writable(
    writes: tuple[PathRule, ...],
    working: str | None,
    environment: Mapping[bytes, bytes],
    closed: tuple[str, ...],
) -> tuple[str, ...]:
    usual = [path for path in (working, *KEPT, *TEMPORARY) if path is not None and _mode(path) is not None]
    found = [os.path.realpath(path) for path in usual]
    named = os.fsdecode(environment.get(b"TMPDIR", b""))
    wanted = [("TMPDIR:", _settled(named))] if named.startswith("/") and _mode(named) is not None else []
    for rule in writes:
        if rule.folder:
            _make(rule.path)
        place = _place(rule)
        if place is not None:
            check_open(place.real, f"{rule.origin}:", closed)
            check_no_link(place, f"{rule.origin}:", _made_later(rule, place))
            wanted.append((f"{rule.origin}:", place))
    straight = (*found, *(place.real for _, place in wanted if place.name == place.real))
    for origin, place in wanted:
        check_straight(place, origin, _links(place), straight)
        found.append(place.real)
    return outermost(path for path in found if not any(is_within(path, other) for other in closed))


def _made_later(rule: PathRule, place: ResolvedPath) -> tuple[str, ...]:
    """The links on the way that an earlier session may have left, for instance in another project."""
    links = _links(place)
    if not links:
        return ()
    from netsandbox.runtime.links import made_later

    return made_later(rule.origin, links)


def _closed_devices(opened: tuple[str, ...]) -> tuple[str, ...]:
    """Disks, and devices by which the machine itself is controlled or watched."""
    found = [*disks()] if os.geteuid() == 0 else []
    names = [entry.name for entry in _entries(DEVICES) if entry.name in HOST_DEVICES or entry.name.startswith(SCREENS)]
    found += [f"{DEVICES}/{name}" for name in (*names, *HOST_DEVICES_BELOW)]  # a missing one is no error
    return tuple(path for path in found if path not in opened)


def _make(path: str) -> None:
    """Make a cache folder that no tool has made yet. No session could make it, since the folder above is read-only."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:  # it stays missing or is not a folder; its first use will show that
        pass


DEVICES = "/dev"
HOST_DEVICES = (
    *("kmsg", "mem", "kmem", "port", "nvram", "kvm", "vhost-net", "vhost-vsock", "vsock", "userfaultfd", "fuse"),
    *("loop-control", "btrfs-control", "autofs", "uinput", "uhid", "rfkill", "snapshot", "watchdog"),
)
HOST_DEVICES_BELOW = ("net/tun", "mapper/control", "vfio/vfio", "cpu/0/msr")
SCREENS = "vcs"
PASSED_OVER = ("shm", "mqueue", "pts", "hugepages")  # no devices, or no disk devices
RAW_MAJORS = (21, 162)  # character devices of disks: sg(4), raw(8)


def disks(folder: str = DEVICES) -> Iterator[str]:
    """The disk devices in *folder* and below; links only lead to one of them."""
    for entry in _entries(folder):
        try:
            seen = entry.stat(follow_symlinks=False)
        except OSError:  # it was unplugged
            continue
        if stat.S_ISDIR(seen.st_mode) and not (folder == DEVICES and entry.name in PASSED_OVER):
            yield from disks(entry.path)
        elif is_disk(seen.st_mode, seen.st_rdev):
            yield entry.path


def is_disk(mode: int, device: int) -> bool:
    return stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and os.major(device) in RAW_MAJORS)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
