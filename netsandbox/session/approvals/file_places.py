"""Which answers about files and folders count for a path. Pure.

An answer is kept for a place: a path and what is done with it. The path of a folder ends with a slash there.

1. An approval to write or to execute a file is one to read it too. A refusal to read it refuses everything.
2. An approval of a folder counts for what lies in it, but not for the secrets in it: those are asked about one by one,
   unless the folder is part of a place of secrets itself.
"""

from __future__ import annotations

from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    FilePlace = tuple[str, str]

READ, WRITE, EXECUTE = OPERATIONS = ("read", "write", "execute")
MAX_ABOVE = 64  # names that an answer may leave off the path of its question


def opening(path: str, operation: str, secret: str | None) -> list[FilePlace]:
    """The places whose approval opens *path*. *secret*: the place of secrets that it lies in."""
    operations = OPERATIONS if operation == READ else (operation,)
    folders = [f"{each}/" for each in (path, *_folders(path)) if secret is None or is_within(each, secret)]
    return [(each, done) for each in (path, *folders) for done in operations]


def closing(path: str, operation: str) -> list[FilePlace]:
    """The places whose refusal closes *path*."""
    folders = [f"{each}/" for each in (path, *_folders(path))]
    return [(each, done) for each in (path, *folders) for done in (READ, operation)]


def raised(place: FilePlace, above: int) -> FilePlace | None:
    """The place of the folder that is *above* names higher; *place* for 0; None if that is the root or above it."""
    path, operation = place
    if above == 0:
        return place
    folders = _folders(path)
    return (f"{folders[above - 1]}/", operation) if above <= len(folders) else None


def names_above(path: str, folder: str) -> int | None:
    """How many names of *path* lie below *folder*; None if it does not lie there."""
    return path.count("/") - folder.count("/") if path != folder and is_within(path, folder) else None


def _folders(path: str) -> list[str]:
    """The folders around *path*, the nearest first, without the root."""
    found = []
    while path := path.rpartition("/")[0]:
        found.append(path)
    return found
