"""Landlock's rights by path, and how paths are left out of a folder that is permitted. Pure.

A right that a rule gives at a folder holds for everything below it, and no rule takes it back (landlock(7)). So a
folder that holds something hidden is not permitted itself: its other entries are, and so on down to what is hidden.
Such a folder can be neither listed nor moved, and an entry that appears in it later is closed.
"""

from __future__ import annotations

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    Permit = tuple[int, str]

# linux/landlock.h
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << number for number in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << number for number in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
HANDLED = (1 << 16) - 1
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = HANDLED & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)  # with reading; a session makes no device
CHANGE = WRITE & ~READ
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV

MAX_CARVED = 4096  # permits; the kernel takes about 12 µs for each


@frozen
class Carved:
    """`paths` are permitted with everything below them, `opened` are the folders on the way to what is hidden, and
    `left_out` those of which some entries were too many, so that they stay closed."""

    paths: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def carve(top: str, hidden: Collection[str], entries: Callable[[str], Iterable[str]], most: int = MAX_CARVED) -> Carved:
    """What to permit so that all of *top* is open but *hidden*. *entries* gives the names in a folder without those of
    links, which need no right of their own; none for a file. All paths are real."""
    if any(is_within(top, path) for path in hidden):
        return Carved()
    closed = frozenset(hidden)
    ways = {above for path in hidden if is_within(path, top) for above in _folders_above(path)}
    found: list[str] = []
    opened: list[str] = []
    left_out: list[str] = []
    waiting = [top]
    while waiting:
        path = waiting.pop()
        if path in closed:
            continue
        if path in ways:
            opened.append(path)
            waiting += [f"{path.rstrip('/')}/{name}" for name in sorted(entries(path), reverse=True)]
        elif len(found) < most:
            found.append(path)
        else:
            left_out.append(path.rpartition("/")[0] or "/")
    return Carved(tuple(found), tuple(opened), tuple(dict.fromkeys(left_out)))


def _folders_above(path: str) -> Iterable[str]:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


class Permits:
    """Collects permits, one for each path."""

    def __init__(self) -> None:
        self._rights: dict[str, int] = {}

    def add(self, rights: int, *paths: str) -> None:
        for path in paths:
            self._rights[path] = self._rights.get(path, 0) | rights

    def without(self, rights: int) -> None:
        """Take these rights away everywhere."""
        self._rights = {path: kept & ~rights for path, kept in self._rights.items()}

    def rights_at(self, path: str) -> int:
        """What the collected permits give at *path*."""
        rights = self._rights.get(path, 0)
        for above in _folders_above(path):
            rights |= self._rights.get(above, 0)
        return rights

    def folder_with(self, rights: int, path: str) -> str | None:
        """The nearest path at or above *path* whose permit has one of *rights*."""
        if self._rights.get(path, 0) & rights:
            return path
        return next((above for above in _folders_above(path) if self._rights.get(above, 0) & rights), None)

    def result(self) -> tuple[Permit, ...]:
        """Sorted by path, without permits that a folder above gives already."""
        kept = []
        for path, rights in sorted(self._rights.items()):
            given = self.rights_at(path.rpartition("/")[0] or "/") if path != "/" else 0
            if rights & ~given:
                kept.append((rights, path))
        return tuple(kept)
