"""Files that the host runs or obeys, compared before and after a session that could write them.

Landlock cannot keep a file in a folder where the session makes others. So the state of each such file is taken before
the command runs, and what differs afterwards is put back. A file is compared by type, rights, target and content; a
large one by its number and its times, of which no program can set the last, and it can only be named.
"""

from __future__ import annotations

import os
import stat

from netsandbox.backends.linux.git_copies import read_file
from netsandbox.backends.linux.private_folders import ON_THE_WAY, open_folder
from netsandbox.runtime.private_file import digest, write_new

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    State = tuple[object, ...]

MAX_COMPARED = 1 << 18  # bytes of a file that is read
MAX_READ = 4 << 20  # bytes of all files together
MAX_KNOWN = 20_000  # names that are looked at before the session
MAX_NEW = 256  # new names in a folder that are taken one by one; of more the folder is taken whole


class ProtectedFiles:
    """*paths* are files, folders and links, and names that are missing."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._unread = MAX_READ
        self._content: dict[str, bytes] = {}
        self._before: dict[str, State] = {}  # folders come before what is in them
        self._unlisted: dict[str, int] = {}  # folders with too many names, and the time of their last change
        self._look([*dict.fromkeys(paths)])
        self.exist = any(state for state in self._before.values())

    def _look(self, paths: list[str]) -> None:
        """At *paths* and what is below them, without following links."""
        for path in paths:
            self._before[path] = self._first_state(path)
            inner = _entries(path)
            if len(paths) + len(inner) <= MAX_KNOWN:
                paths += inner
            else:
                self._unlisted[path] = os.lstat(path).st_ctime_ns

    def _first_state(self, path: str) -> State:
        state = _state(path, self._content if self._unread > 0 else None)
        self._unread -= len(self._content.get(path, b""))
        return state

    def put_back(self, is_skipped: Callable[[str], bool], take: Callable[[str], None]) -> tuple[list[str], list[str]]:
        """Give everything its old state again; *take* moves away what is there now. Returns the paths that differed,
        and of them those that are still as the session left them."""
        changed: list[str] = []
        left: list[str] = []
        for path, state in self._before.items():
            if not is_skipped(path) and self._differs(path, state):  # also if its folder was put back just now
                changed.append(path)
                left += [] if self._restore(path, state, take) else [path]
        for folder in (path for path, state in self._before.items() if _is_folder(state)):
            if folder in self._unlisted:
                left += [folder] if _last_change(folder) != self._unlisted[folder] else []
                continue
            new = [path for path in _entries(folder) if path not in self._before and not is_skipped(path)]
            if len(new) > MAX_NEW:
                changed.append(folder)
                left += self._exchange(folder, take)
                continue
            for path in new:  # a folder is taken with all that is in it
                changed.append(path)
                take(path)
                left += [path] if os.path.lexists(path) else []
        return changed, left

    def _exchange(self, folder: str, take: Callable[[str], None]) -> list[str]:
        """Take *folder* whole, and put back what was in it. Returns what could not be: it is where the folder is."""
        take(folder)
        known = {path: state for path, state in self._before.items() if f"{path}/".startswith(f"{folder}/")}
        return [path for path, state in known.items() if not self._restore(path, state, take)]

    def _restore(self, path: str, state: State, take: Callable[[str], None]) -> bool:
        is_folder = _is_folder(state)
        if state and not is_folder and path not in self._content and not isinstance(state[0], str):
            return False  # too large to be kept, or no file
        if os.path.lexists(path) and not (is_folder and os.path.isdir(path) and not os.path.islink(path)):
            take(path)
        try:
            return not os.path.lexists(path) if not state else self._put(path, state[0])
        except OSError:
            return False

    def _put(self, path: str, what: object) -> bool:
        """*what*: the target of a link, or a mode."""
        folder, name = open_folder(os.path.dirname(path)), os.path.basename(path)
        try:
            if isinstance(what, str):
                os.symlink(what, name, dir_fd=folder)
            elif path in self._content:
                write_new(name, self._content[path], stat.S_IMODE(int(str(what))), folder)
            else:
                if not os.path.lexists(path):
                    os.mkdir(name, dir_fd=folder)
                here = os.open(name, ON_THE_WAY, dir_fd=folder)
                os.chmod(f"/proc/self/fd/{here}", stat.S_IMODE(int(str(what))))
                os.close(here)
        finally:
            os.close(folder)
        return True

    def _differs(self, path: str, state: State) -> bool:
        return _state(path, {} if path in self._content else None) != state


def _is_folder(state: State) -> bool:
    return len(state) == 1 and isinstance(state[0], int) and stat.S_ISDIR(state[0])


def _last_change(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0


def _entries(path: str) -> list[str]:
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return []
        return [f"{path}/{name}" for name in sorted(os.listdir(path))]
    except OSError:  # it is missing, or this user may not look
        return []


def _state(path: str, contents: dict[str, bytes] | None) -> State:
    """Empty: nothing is there. With *contents* the content counts, if it can be read, and is put there."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return (os.readlink(path),)
    except OSError:
        return ()
    if not stat.S_ISREG(found.st_mode):
        return (found.st_mode,)
    try:
        if contents is not None:
            contents[path] = read_file(path, most=MAX_COMPARED)
            return (found.st_mode, digest(contents[path]))
    except OSError:  # it is large, or this user may not read it
        pass
    return (found.st_mode, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
