"""Rules for files, and what follows from them. Pure.

- In the mode `project` a session sees the system, toolchains, its project, and what a rule names. It writes its
  project, what `allow_write` names, and a private home (`shown_files`).
- In the modes `readable` and `open` every file can be read except secrets (`home_paths`) and the paths in `deny_read`.
  `allow_read` shows the secrets at or below its path; a `deny_read` wins over every `allow_read`.
- In the mode `readable` a session writes the working folder, the temporary folders, /dev and what `allow_write` names.
- A `deny_write` keeps a path read-only that would be writable.
- Paths are compared by whole names, after links were followed. A secret is hidden by its name and where that leads.
- A path that is shown or opened must be the real one: a link that a command could have made opens nothing.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PROJECT, READABLE, OPEN = "project", "readable", "open"
FILE_MODES = (PROJECT, READABLE, OPEN)
# What a program does with a path. CHANGE: what exists; MAKE: it makes, removes or replaces a name in the folder above.
READ, EXECUTE, CHANGE, MAKE, FOLDER = "read", "execute", "change", "make", "folder"
READING = (READ, EXECUTE)
MAX_WRITABLE = 512  # the helper's bound
MAX_DENIED = 512  # each is a mount, and an untrusted project file may list paths here


@frozen
class PathRule:
    """One absolute path and its origin: an option, or `FILE:LINE`. `folder`: it was written with a slash at its end.
    `wild`: the length of the path before the first name with a wildcard; 0 if it has none (`path_patterns`)."""

    path: str
    origin: str
    folder: bool = False
    wild: int = 0


@frozen
class FileRules:
    """The rules as written. `mode` is one of FILE_MODES."""

    allow_read: tuple[PathRule, ...] = ()
    allow_write: tuple[PathRule, ...] = ()
    deny_read: tuple[PathRule, ...] = ()
    allow_execute: tuple[PathRule, ...] = ()
    deny_write: tuple[PathRule, ...] = ()
    caches: tuple[
        PathRule, ...
    ] = ()  # folders of which a session changes a copy; where there are no copies, themselves
    copies: tuple[PathRule, ...] = ()  # the same, but where there are no copies they are read-only
    mode: str = PROJECT
    share_tmp: bool = False
    fresh_home: bool = False  # the session begins with an empty home, which is not kept
    devices: tuple[str, ...] = ()  # real paths below /dev that are opened besides the usual ones
    listed_only: bool = False  # nothing is executed but the command and `allow_execute`; a Mac always has a list
    overlay: str | None = None  # the folder of which the session changes a copy; empty: that of the project

    @property
    def names_paths(self) -> bool:
        shown = (*self.allow_read, *self.allow_write, *self.caches, *self.copies)
        return bool(shown or self.deny_read or self.deny_write)

    @property
    def needs_resolving(self) -> bool:
        """Whether `runtime.effective_rules` could change anything; most sessions have no such rule."""
        allows = (*self.allow_read, *self.allow_write, *self.caches, *self.copies, *self.allow_execute)
        return bool(self.deny_read or self.deny_write) or any(rule.wild for rule in allows)


@frozen
class ResolvedPath:
    """A path as it is written, and the real path that it leads to."""

    name: str
    real: str


def path_rule(text: str, origin: str, base: str, home: Callable[[], str]) -> PathRule:
    """*text* with `~` expanded; a relative path begins at *base*. `*` and `?` in *text* are wildcards."""
    if not text or "\0" in text:
        raise UsageError(f"{origin}: {text!a} is not a path; write one such as ~/.cache or /srv/data")
    if text == "~" or text.startswith("~/"):
        whole = home() + text[1:]
    elif text.startswith("~"):
        raise UsageError(f"{origin}: {text!a} names another user's home; write the whole path")
    else:
        whole = text if text.startswith("/") else f"{base}/{text}"
    return PathRule(normal(whole), origin, text.endswith("/"), _wild(text, whole, origin))


def _wild(text: str, whole: str, origin: str) -> int:
    """The length of the part of *whole* that is taken as it is: a home or a base may have any name."""
    if "*" not in text and "?" not in text:
        return 0
    first = min(at for at in (text.find("*"), text.find("?")) if at >= 0)
    rest = text[text.rfind("/", 0, first) + 1 :]
    if "**" in rest or ".." in rest.split("/"):
        raise UsageError(f"{origin}: {text!a} has ** or .. among wildcards; write a * for each folder instead")
    return len(normal(whole[: len(whole) - len(rest)]))


def normal(path: str) -> str:
    """*path*, which is absolute, without `.` and repeated slashes; `..` stays, since a link may stand before it."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def is_within(path: str, folder: str) -> bool:
    """*path* is *folder* or somewhere below it; `/a-b` is not below `/a` (attack 145)."""
    return path == folder or path.startswith(folder if folder == "/" else f"{folder}/")


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """*paths* without those that are within another one."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda path: (path.count("/"), path)):
        if not any(is_within(path, folder) for folder in kept):
            kept.append(path)
    return tuple(kept)


def is_lifted(secret: ResolvedPath, allowed: Iterable[ResolvedPath]) -> bool:
    """Whether a rule allows to read this secret: it is one of *allowed* as they are written, or below one.
    Where their links lead does not count: an earlier command may have made them."""
    return any(is_within(secret.name, place.name) or is_within(secret.real, place.name) for place in allowed)


def hidden(
    secrets: Iterable[ResolvedPath], allowed: Iterable[ResolvedPath], denied: Iterable[ResolvedPath]
) -> tuple[str, ...]:
    """The real paths that a session cannot read, each with all below it."""
    shown = tuple(allowed)
    closed = [place.real for place in secrets if not is_lifted(place, shown)]
    return outermost((*closed, *(place.real for place in denied)))


def check_hidden(paths: tuple[str, ...]) -> tuple[str, ...]:
    """*paths*, if they can be covered."""
    if "/" in paths:
        raise UsageError("the whole disk cannot be hidden; name the folders that the command is not to read")
    return paths


def check_kept(paths: tuple[str, ...]) -> tuple[str, ...]:
    """*paths*, if they can be kept read-only."""
    if "/" in paths:
        raise UsageError("the whole disk cannot be kept read-only; leave --deny-write / out, or name folders")
    return paths


def check_few(denied: tuple[PathRule, ...]) -> None:
    """An error for more paths to hide than a session can be made with while somebody waits."""
    if len(denied) > MAX_DENIED:
        raise UsageError(
            f"{denied[MAX_DENIED].origin}: more than {MAX_DENIED} paths to hide; name the folders above them instead"
        )


def check_shown(rule: PathRule, place: ResolvedPath, closed: Iterable[str], denied: Iterable[ResolvedPath]) -> None:
    """An error for a path inside of a secret, which would change nothing: the secret is hidden as a whole."""
    if any(is_within(place.real, other.real) for other in denied):
        return  # the deny wins, and its own check reports it
    for path in closed:
        if is_within(place.real, path):
            raise UsageError(
                f"{rule.origin}: {rule.path!a} is within {path!a}, which is hidden as a whole; allow that, or neither"
            )


def check_open(path: str, origin: str, closed: Iterable[str]) -> None:
    """An error for a folder to work in or to write that the session does not see."""
    for folder in closed:
        if is_within(path, folder):
            raise UsageError(
                f"{origin} {path!a} is within {folder!a}, which a session does not see; use another folder, or show it"
                f" with --allow-read {folder!a} unless a deny_read names it"
            )


def check_straight(place: ResolvedPath, origin: str, links: Iterable[str], writable: Iterable[str]) -> None:
    """An error for a path that leads out of *writable* by a link within it: an earlier command may have made that."""
    known = tuple(writable)
    if any(is_within(place.real, folder) for folder in known):
        return
    check_no_link(place, origin, (link for link in links if any(is_within(link, folder) for folder in known)))


def check_no_link(place: ResolvedPath, origin: str, links: Iterable[str]) -> None:
    """An error for a path to be written that goes through any of *links*, which a command could have made."""
    for link in links:
        raise UsageError(
            f"{origin} {place.name!a} leads to {place.real!a} by the link {link!a}, which a command could have"
            f" made; write {place.real!a} if you mean that"
        )


def check_writable(paths: tuple[str, ...]) -> tuple[str, ...]:
    """*paths*, if writing can be confined to them."""
    if "/" in paths:
        raise UsageError(
            "writing cannot be confined to the whole disk; work in another folder, or leave out allow_write"
        )
    if len(paths) > MAX_WRITABLE:
        raise UsageError(f"there are more than {MAX_WRITABLE} paths to write; name the folders above them instead")
    return paths
