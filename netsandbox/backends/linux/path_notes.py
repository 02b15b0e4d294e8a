"""The paths that were noted: each once, and many paths in one folder as that folder. Pure.

A command may write a hundred thousand files. Once more than MAX_SIBLINGS names below a folder were noted, and if a rule
may name the folder, the folder is noted and nothing below it any more. After MAX_NOTES notes the rest is only counted.
A path with more names than MAX_DEPTH is noted as its folder at that depth, since each folder above a path is kept and a
path may have thousands.
"""

from __future__ import annotations

from netsandbox.policy.path_folding import MANY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.policy.path_folding import EntryLimits

MAX_SIBLINGS = 16
MAX_NOTES = 1000
MAX_DEPTH = 32


class PathNotes:
    """`left_out` counts the paths after the last note that fitted."""

    def __init__(self, limits: EntryLimits, most: int = MAX_NOTES) -> None:
        self._limits = limits
        self._most = most
        self._noted: set[tuple[str, str]] = set()
        self._names: dict[str, set[str]] = {}  # below each folder
        self._whole: set[str] = set()
        self.left_out = 0

    def add(self, path: str, done: str) -> tuple[str, str] | None:
        """The new note that *path* causes, or None."""
        names = path.split("/", MAX_DEPTH + 1)
        if len(names) > MAX_DEPTH + 1:
            path, done = "/".join(names[:-1]), MANY
        if (path, done) in self._noted or path in self._whole or any(above in self._whole for above in _above(path)):
            return None
        if len(self._noted) >= self._most:
            self.left_out += 1
            return None
        whole = self._crowded(path)
        if whole is not None:
            self._whole.add(whole)
            path, done = whole, MANY
        self._noted.add((path, done))
        return path, done

    def _crowded(self, path: str) -> str | None:
        """Count the names on the way; returns the outermost folder that is too full."""
        full, below = None, path
        for folder in _above(path):
            if not self._limits.permits(folder):
                break
            names = self._names.setdefault(folder, set())
            names.add(below)
            if len(names) > MAX_SIBLINGS:
                full = folder
            below = folder
        return full


def _above(path: str) -> Iterator[str]:
    """The folders above *path*, nearest first."""
    path = path.rpartition("/")[0]
    while path:
        yield path
        path = path.rpartition("/")[0]
