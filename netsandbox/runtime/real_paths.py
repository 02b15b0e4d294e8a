"""Resolves many paths that share their folders: each folder is looked at once, and the links on the way are known."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Links = tuple[tuple[str, str], ...]  # path and target of each link
    Found = tuple[str | None, Links]


class RealPaths:
    """The disk as it is at the first look. Paths are absolute."""

    def __init__(self) -> None:
        self._known: dict[str, Found] = {"/": ("/", ())}

    def real(self, path: str) -> str | None:
        """Where *path* leads; None if nothing is there, or nothing that we can reach."""
        return self.found(path)[0]

    def reached(self, path: str) -> str:
        """The same; a path that leads nowhere as far as it does."""
        return self.found(path)[0] or os.path.realpath(path)

    def links(self, path: str) -> Links:
        """The links on the way to *path*, each with its target."""
        return self.found(path)[1]

    def forget_missing(self) -> None:
        """Something was made since: look again at what was not there."""
        self._known = {path: found for path, found in self._known.items() if found[0] is not None}

    def found(self, path: str) -> Found:
        known = self._known.get(path)
        if known is None:
            self._known[path] = (None, ())  # a link that leads to itself leads nowhere
            known = self._known[path] = self._look(path)
        return known

    def _look(self, path: str) -> Found:
        above, _, name = path.rpartition("/")
        folder, links = self.found(above or "/")
        if folder is None or name in ("", "."):
            return folder, links
        if name == "..":
            return os.path.dirname(folder), links
        whole = f"{folder}/{name}" if folder != "/" else f"/{name}"
        if whole != path:
            real, more = self.found(whole)
            return real, (*links, *more)
        try:
            target = os.readlink(whole)
        except OSError as error:
            return (whole if error.errno == errno.EINVAL else None), links
        real, more = self.found(target if target.startswith("/") else f"{folder}/{target}")
        return real, (*links, (whole, target), *more)


def names_in(folder: str) -> list[str]:
    """The names in *folder*, sorted; none if it is missing, or this user may not read it."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def links_out_of(folder: str) -> list[str]:
    """The links in *folder*, except those to a file beside them, which is shown with the folder."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_symlink() and "/" in os.readlink(entry.path)]
    except OSError:
        return []


def identities(paths: Iterable[str]) -> dict[str, tuple[int, int] | None]:
    """The device and number of the file at each path; None if nothing is there."""
    return {path: _identity(path) for path in paths}


def replaced(before: Mapping[str, tuple[int, int] | None]) -> list[str]:
    """The paths at which another file is now, or none. A mount on such a path is gone, in every namespace."""
    return [path for path, known in before.items() if _identity(path) != known]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return state.st_dev, state.st_ino
