"""What was said about files, and what follows from it (pure).

Reading is open but for secrets (`secret_places`) and what `deny_read` names. `allow_read` shows the secrets at or below
its path; a `deny_read` wins over every `allow_read`. Once any `allow_write` was said, nothing else can be written but
the working folder, the temporary folders and /dev. Paths are compared by whole names, after links were followed; a
secret counts as lying where it leads and where it is named. What is shown or opened has to be written as it is: a link
that a command could have made opens nothing.
"""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_WRITABLE = 512  # as many as the helper takes
MAX_DENIED = 512  # each is a mount; a project's file may say so by itself


@frozen
class PathRule:
    """One absolute path, and who said it: an option, or `FILE:LINE`. `folder`: it ends with a slash as it was said."""

    path: str
    origin: str
    folder: bool = False


@frozen
class FileRules:
    """As they were said. `allow_write` is None when nobody said it: then writing stays open (on Linux)."""

    allow_read: tuple[PathRule, ...] = ()
    allow_write: tuple[PathRule, ...] | None = None
    deny_read: tuple[PathRule, ...] = ()
    allow_execute: tuple[PathRule, ...] = ()


@frozen
class Place:
    """A path by its name and by what it leads to."""

    name: str
    real: str


def path_rule(text: str, origin: str, base: str, home: Callable[[], str]) -> PathRule:
    """*text* with `~` expanded; a relative path begins at *base*."""
    if not text or "\0" in text:
        raise UsageError(f"{origin}: {text!a} is not a path; write one such as ~/.cache or /srv/data")
    if text == "~" or text.startswith("~/"):
        text = home() + text[1:]
    elif text.startswith("~"):
        raise UsageError(f"{origin}: {text!a} names another user's home; write the whole path")
    return PathRule(normal(text if text.startswith("/") else f"{base}/{text}"), origin, text.endswith("/"))


def normal(path: str) -> str:
    """*path*, which is absolute, without `.` and slashes that say nothing; `..` stays: a link may stand before it."""
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


def is_lifted(secret: Place, allowed: Iterable[Place]) -> bool:
    """Whether the user said that this secret may be read: it is one of *allowed*, or below one, as they are written.
    Where their links lead does not count: an earlier command may have made them."""
    return any(is_within(secret.name, place.name) or is_within(secret.real, place.name) for place in allowed)


def hidden(secrets: Iterable[Place], allowed: Iterable[Place], denied: Iterable[Place]) -> tuple[str, ...]:
    """The real paths that a session cannot read, each with all below it."""
    shown = tuple(allowed)
    closed = [place.real for place in secrets if not is_lifted(place, shown)]
    return outermost((*closed, *(place.real for place in denied)))


def check_hidden(paths: tuple[str, ...]) -> tuple[str, ...]:
    """*paths*, if they can be covered."""
    if "/" in paths:
        raise UsageError("the whole disk cannot be hidden; name the folders that the command is not to read")
    return paths


def check_few(denied: tuple[PathRule, ...]) -> None:
    """An error for more paths to hide than a session can be made with while somebody waits."""
    if len(denied) > MAX_DENIED:
        raise UsageError(
            f"{denied[MAX_DENIED].origin}: more than {MAX_DENIED} paths to hide; name the folders above them instead"
        )


def check_shown(rule: PathRule, place: Place, closed: Iterable[str], denied: Iterable[Place]) -> None:
    """An error for a path inside of a secret, which would change nothing: the secret is hidden as a whole."""
    if any(is_within(place.real, other.real) for other in denied):
        return  # a deny wins, and says so in its own place
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


def check_straight(place: Place, origin: str, links: Iterable[str], writable: Iterable[str]) -> None:
    """An error for a path that leads out of *writable* by a link within it: an earlier command may have made that."""
    known = tuple(writable)
    if any(is_within(place.real, folder) for folder in known):
        return
    check_no_link(place, origin, (link for link in links if any(is_within(link, folder) for folder in known)))


def check_no_link(place: Place, origin: str, links: Iterable[str]) -> None:
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
