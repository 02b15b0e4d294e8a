"""System calls that open, change or execute files by path: their numbers and the positions of their paths (pure;
syscalls(2)).

Calls on descriptors are missing, since the file was opened by path before.
"""

from __future__ import annotations

import sys

from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import CHANGE, EXECUTE, FOLDER, MAKE

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[tuple[int | None, int | None], tuple["PathArgument", ...]]

OPEN = "open"  # what a call does with a path, besides the words of `file_rules`: it depends on its flags


@frozen
class PathArgument:
    """One path of a call, by argument numbers. `folder`: the descriptor that the path starts at; None: the working
    folder. `flags`: the flags with AT_SYMLINK_NOFOLLOW, or those of open. `follows`: whether a final link is followed.
    `removes`: whether the name must exist and is gone afterwards.
    """

    path: int
    does: str
    folder: int | None = None
    flags: int | None = None
    follows: bool = True
    removes: bool = False


@frozen
class FileCall:
    name: str
    paths: tuple[PathArgument, ...]


def _name(path: int, folder: int | None = None, does: str = MAKE) -> PathArgument:
    return PathArgument(path, does, folder, follows=False)


def _removed(path: int, folder: int | None = None) -> PathArgument:
    return PathArgument(path, MAKE, folder, follows=False, removes=True)


def _at(does: str, flags: int | None = None) -> PathArgument:
    return PathArgument(1, does, 0, flags)


# name: ((x86_64, aarch64), paths); the most frequent calls come first
_ROWS: dict[str, Row] = {
    "openat": ((257, 56), (_at(OPEN, 2),)),
    "open": ((2, None), (PathArgument(0, OPEN, flags=1),)),
    "openat2": ((437, 437), (_at(OPEN, 2),)),  # its flags are in memory
    "creat": ((85, None), (PathArgument(0, OPEN),)),
    "mkdir": ((83, None), (_name(0, does=FOLDER),)),
    "mkdirat": ((258, 34), (_name(1, 0, FOLDER),)),
    "rename": ((82, None), (_removed(0), _name(1))),
    "renameat": ((264, 38), (_removed(1, 0), _name(3, 2))),
    "renameat2": ((316, 276), (_removed(1, 0), _name(3, 2))),
    "link": ((86, None), (_name(1),)),
    "linkat": ((265, 37), (_name(3, 2),)),
    "symlink": ((88, None), (_name(1),)),
    "symlinkat": ((266, 36), (_name(2, 1),)),
    "unlink": ((87, None), (_removed(0),)),
    "unlinkat": ((263, 35), (_removed(1, 0),)),
    "rmdir": ((84, None), (_removed(0),)),
    "mknod": ((133, None), (_name(0),)),
    "mknodat": ((259, 33), (_name(1, 0),)),
    "truncate": ((76, 45), (PathArgument(0, CHANGE),)),
    "chmod": ((90, None), (PathArgument(0, CHANGE),)),
    "fchmodat": ((268, 53), (_at(CHANGE),)),
    "fchmodat2": ((452, 452), (_at(CHANGE, 3),)),
    "chown": ((92, None), (PathArgument(0, CHANGE),)),
    "lchown": ((94, None), (_name(0, does=CHANGE),)),
    "fchownat": ((260, 54), (_at(CHANGE, 4),)),
    "utime": ((132, None), (PathArgument(0, CHANGE),)),
    "utimes": ((235, None), (PathArgument(0, CHANGE),)),
    "futimesat": ((261, None), (_at(CHANGE),)),
    "utimensat": ((280, 88), (_at(CHANGE, 3),)),
    "setxattr": ((188, 5), (PathArgument(0, CHANGE),)),
    "lsetxattr": ((189, 6), (_name(0, does=CHANGE),)),
    "removexattr": ((197, 14), (PathArgument(0, CHANGE),)),
    "lremovexattr": ((198, 15), (_name(0, does=CHANGE),)),
    "execve": ((59, 221), (PathArgument(0, EXECUTE),)),
    "execveat": ((322, 281), (_at(EXECUTE),)),
}
_COLUMNS = {"x86_64": 0, "aarch64": 1}


def observed_calls(machine: str, *, execution_only: bool = False) -> dict[int, FileCall]:
    """The calls by number for `uname -m`."""
    column = _COLUMNS[machine]
    rows = {name: row for name, row in _ROWS.items() if name.startswith("exec")} if execution_only else _ROWS
    numbers = ((row[0][column], FileCall(name, row[1])) for name, row in rows.items())
    return {number: call for number, call in numbers if number is not None}


_NO_ARGUMENT = 255
_TELLS, _ASKS = 1, 2
_ASKED = ("openat", "open", "creat", "execve")  # openat2 may limit its lookup, which another process cannot repeat
_USES = {OPEN: "o", CHANGE: "w", MAKE: "n", FOLDER: "d", EXECUTE: "x"}
_SPECIAL = {"creat": "c", "openat2": "h"}


def call_rows(calls: dict[int, FileCall], *, tells: bool = False, asks: bool = False) -> bytes:
    """The table for the native observer: struct path_row of native/traps.h. *tells*: changes that are not refused are
    reported too. *asks*: refused calls that open or execute a file wait for the user."""
    rows = bytearray()
    for number, call in calls.items():
        told = (_TELLS if tells else 0) | (_ASKS if asks and call.name in _ASKED else 0)
        for named in call.paths:
            use = _SPECIAL.get(call.name) or ("u" if named.removes else _USES[named.does])
            arguments = (named.path, *(_NO_ARGUMENT if each is None else each for each in (named.folder, named.flags)))
            rows += number.to_bytes(2, sys.byteorder) + use.encode("ascii")
            rows += bytes((*arguments, int(named.follows), told))
    return bytes(rows)


def broker_rows(files: bytes, guarded_bind: int | None) -> bytes:
    """The table with the broker's part: a row for bind if the supervisor decides about ports; never an empty table."""
    return files + (guarded_bind or 0).to_bytes(2, sys.byteorder) + bytes(6)
