"""Files that the host runs or obeys, compared before and after a session that could write them.

Landlock cannot keep a file in a folder where the session makes others. So the state of each such file is taken before
the command runs, and what differs afterwards is named. A file is compared by type, rights, target and content; a large
one by its number and its times, of which no program can set the last.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.git_copies import read_file
from netsandbox.runtime.private_file import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    State = tuple[object, ...]

CONTENT = ("mode", "digest")  # the state of a file that was read
MAX_COMPARED = 1 << 18  # bytes of a file that is read
MAX_READ = 4 << 20  # bytes of all files together
MAX_FILES = 512  # that are compared before the session
MAX_NEW = 4096  # names that are looked at afterwards


class ProtectedFiles:
    """*paths* are files, folders and links, and names that are missing."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._tops = tuple(dict.fromkeys(paths))
        self._unread = MAX_READ
        self._before = {path: self._first_state(path) for path in _walk(self._tops, MAX_FILES)}
        self.exist = any(state for state in self._before.values())

    def _first_state(self, path: str) -> State:
        state = _state(path, reads=self._unread > 0)
        self._unread -= os.lstat(path).st_size if len(state) == len(CONTENT) else 0
        return state

    def changed(self) -> list[str]:
        """The paths that are new, gone or different. What was known is compared first: new files cannot hide it."""
        before = self._before.items()
        found = [path for path, state in before if _state(path, reads=len(state) == len(CONTENT)) != state]
        for path in _walk(self._tops, MAX_NEW):  # a new folder is named, not each file in it
            if path not in self._before and not path.startswith(tuple(f"{other}/" for other in found)):
                found.append(path)
        return found


def _walk(tops: Iterable[str], most: int) -> list[str]:
    """*tops* and what is below them, without following links."""
    found = list(tops)
    for path in found:
        found += _entries(path)[: max(0, most - len(found))]
    return found


def _entries(path: str) -> list[str]:
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return []
        return [f"{path}/{name}" for name in sorted(os.listdir(path))]
    except OSError:  # it is missing, or this user may not look
        return []


def _state(path: str, *, reads: bool) -> State:
    """Empty: nothing is there. *reads*: compare the content, if it can be read."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return (os.readlink(path),)
    except OSError:
        return ()
    if not stat.S_ISREG(found.st_mode):
        return (found.st_mode,)
    try:
        if reads:
            return (found.st_mode, digest(read_file(path, most=MAX_COMPARED)))
    except OSError:  # it is large, or this user may not read it
        pass
    return (found.st_mode, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
