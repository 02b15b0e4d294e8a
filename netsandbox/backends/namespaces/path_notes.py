"""Which paths have been noted: each once, and where there are many in one folder, the folder instead. Pure.

A command may write a hundred thousand files. When more than CROWD names below a folder have been noted, the folder is
noted and nothing below it any more, as far as it may be proposed; after MOST notes the rest is only counted. A path of
more names than DEEPEST stands for its folder at that depth: each folder above a path is kept, and a path may have
thousands.
"""

from __future__ import annotations

from netsandbox.policy.path_folding import MANY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.policy.path_folding import EntryLimits

CROWD = 16
MOST = 1000
DEEPEST = 32


class PathNotes:
    """`left_out` counts what came after the last note that there was room for."""

    def __init__(self, limits: EntryLimits, most: int = MOST) -> None:
        self._limits = limits
        self._most = most
        self._noted: set[tuple[str, str]] = set()
        self._names: dict[str, set[str]] = {}  # below each folder
        self._whole: set[str] = set()
        self.left_out = 0

    def add(self, path: str, done: str) -> tuple[str, str] | None:
        """What is to be written down because of it, if anything is new."""
        names = path.split("/", DEEPEST + 1)
        if len(names) > DEEPEST + 1:
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
        """Count the names on the way; the outermost folder that has become too full."""
        full, below = None, path
        for folder in _above(path):
            if not self._limits.permits(folder):
                break
            names = self._names.setdefault(folder, set())
            names.add(below)
            if len(names) > CROWD:
                full = folder
            below = folder
        return full


def _above(path: str) -> Iterator[str]:
    """The folders above *path*, the nearest first."""
    path = path.rpartition("/")[0]
    while path:
        yield path
        path = path.rpartition("/")[0]
