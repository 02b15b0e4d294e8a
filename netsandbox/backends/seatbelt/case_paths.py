"""A path as the macOS kernel spells it: links followed, and each name as it is on the disk.

Most disks of macOS ignore case and accept a letter with an accent in either of two forms, so a path has many spellings.
Seatbelt compares with the name on the disk: a deny in any other spelling would match nothing.
"""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

O_EVTONLY = 0x8000  # open(2) of macOS: without read permission
F_GETPATH: int | None = getattr(fcntl, "F_GETPATH", None)  # only on macOS; elsewhere a name has one spelling
MAXPATHLEN = 1024
DATA = "/System/Volumes/Data"  # the location of /Users and others, which F_GETPATH may return


def true_path(path: str) -> str:
    """The true spelling. A part that does not exist keeps its spelling, below the nearest folder that exists."""
    return spelled(os.path.realpath(path), on_disk)


class CasePaths:
    """Each path as it was at its first lookup, so that later changes of links do not affect what was checked."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        if path not in self._known:
            self._known[path] = true_path(path)
        return self._known[path]


def is_same_name(one: str, other: str) -> bool:
    """Whether a disk that ignores case and forms of accents treats both as the same name (pure)."""
    return _folded(one) == _folded(other)


def _folded(path: str) -> str:
    from unicodedata import normalize

    return normalize("NFD", normalize("NFD", path.removeprefix(DATA)).casefold())


def spelled(path: str, name_of: Callable[[str], str | None]) -> str:
    """*path*, whose existing part is spelled by *name_of*, which returns None for a path that does not exist."""
    known, rest = path, ""
    while True:
        found = name_of(known)
        if found is not None:
            return found if not rest else f"{found.rstrip('/')}/{rest}"
        above, _, name = known.rpartition("/")
        if not above:
            return path
        known, rest = above, f"{name}/{rest}".rstrip("/")


def on_disk(path: str) -> str | None:
    if F_GETPATH is None:
        return None
    try:
        fd = os.open(path, O_EVTONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.fsdecode(fcntl.fcntl(fd, F_GETPATH, bytes(MAXPATHLEN)).partition(b"\0")[0]) or None
    except OSError:
        return None
    finally:
        os.close(fd)
