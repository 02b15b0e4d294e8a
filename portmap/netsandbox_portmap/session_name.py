"""The name of a session: a DNS label, since its servers are reached as http://NAME.localhost.

Rules kept here:
1. A name has a-z, 0-9 and hyphens, and at most 40 characters. It is never only digits, which would look like the port
   in PORT.NAME.localhost; never `localhost`; never a label with hyphens at 3 and 4, which DNS reserves (xn--…).
2. Folder and branch come from files that an earlier command may have written: they are read with bounds, git is never
   run, and nothing wrong in them raises.
3. Only one of a user's live sessions holds a name, by a lock that the kernel releases when the holder dies.
"""

from __future__ import annotations

import os

from netsandbox.errors import HostError, UsageError
from netsandbox_portmap import MAX_NAME, NAME_LETTERS, is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_portmap.ranges import RangeLock

SHORTEST_FOLDER = 12  # characters kept of a folder's name beside a long branch
MAIN_BRANCHES = ("main", "master", "trunk")
_FALLBACK = "session"
_MAX_FILE, _MAX_DEPTH, _MAX_TWINS = 4096, 64, 1000
_TYPE, _REGULAR = 0o170000, 0o100000
_BRANCH, _GITDIR = "ref: refs/heads/", "gitdir: "


def slug(text: str) -> str:
    """The valid name nearest to any *text*."""
    cleaned = "".join(char if char in NAME_LETTERS else "-" for char in text.lower())
    label = "-".join(filter(None, cleaned.split("-")))[:MAX_NAME].rstrip("-")
    if is_name(label):
        return label
    return f"{_FALLBACK}-{label}"[:MAX_NAME].rstrip("-")


def check_name(text: str) -> str:
    """*text*, the value of --name, if it is a valid name: users later type exactly what they gave."""
    if not is_name(text):
        advice = f"use a-z, 0-9 and hyphens, at most {MAX_NAME}, not digits alone; for instance --name {slug(text)}"
        raise UsageError(f"--name {text[:80]!a} cannot be part of NAME.localhost; {advice}")
    return text


def default_name(folder: str, branch: str | None) -> str:
    """The folder's name, and the branch's unless it is a usual default branch."""
    try:
        base = os.path.basename(os.path.abspath(folder))
    except OSError:  # the working folder was removed
        base = ""
    if branch is None or branch in MAIN_BRANCHES:
        return slug(base)
    if not any(char.isalnum() and char in NAME_LETTERS for char in base.lower()):
        base = _FALLBACK  # a branch alone, which its author named, would be the name of another project
    if len(base) + 1 + len(branch) > MAX_NAME:
        base = base[: max(SHORTEST_FOLDER, MAX_NAME - 1 - len(branch))]
    return slug(f"{base}-{branch}")


def branch_of(folder: str) -> str | None:
    """The branch that is checked out at *folder* or above it; None if there is none or it is unknown."""
    try:
        return _branch(os.path.abspath(folder))
    except (OSError, ValueError):
        return None


def _branch(folder: str) -> str | None:
    for _ in range(_MAX_DEPTH):
        place = os.path.join(folder, ".git")
        if os.path.lexists(place):
            head = _first_line(os.path.join(_git_folder(folder, place), "HEAD"))
            return head[len(_BRANCH) :] or None if head.startswith(_BRANCH) else None
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return None


def _git_folder(folder: str, place: str) -> str:
    """*place*, or the folder it points to: in a worktree or a submodule `.git` is a file."""
    if os.path.isdir(place):
        return place
    line = _first_line(place)
    if not line.startswith(_GITDIR):
        raise ValueError("not a git folder")
    return os.path.join(folder, line[len(_GITDIR) :])


def _first_line(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if os.fstat(fd).st_mode & _TYPE != _REGULAR:
            raise ValueError("not a regular file")
        data = os.read(fd, _MAX_FILE)
    finally:
        os.close(fd)
    return os.fsdecode(data.split(b"\n", 1)[0].rstrip())


class HeldName:
    """A name that no other live session of this user has, until `close` or the end of this process."""

    def __init__(self, name: str, lock: RangeLock) -> None:
        self.name = name
        self._lock = lock

    def close(self) -> None:
        self._lock.close()


def hold_name(name: str, *, explicit: bool, avoided: Callable[[str], bool] | None = None) -> HeldName:
    """Hold *name*; if it is taken, an *explicit* one is an error and a default one gets a number: name-2, name-3, …
    A default name that is *avoided* counts as taken."""
    from netsandbox.paths import state_home
    from netsandbox_portmap.ranges import RangeLock

    state = state_home()
    lock: RangeLock | None = None
    try:
        os.makedirs(state, 0o700, exist_ok=True)
        lock = RangeLock.open(os.path.join(state, "names"), shared=False)
        held = HeldName(_take(lock, name, explicit=explicit, avoided=avoided), lock)
        lock = None
    except OSError as error:
        advice = "set XDG_STATE_HOME to a directory that can be written, on a file system with locks"
        raise HostError(f"cannot keep the names of sessions in {state}: {error.strerror}; {advice}") from None
    finally:
        if lock is not None:
            lock.close()
    return held


def _take(lock: RangeLock, name: str, *, explicit: bool, avoided: Callable[[str], bool] | None) -> str:
    def is_free(name: str) -> bool:
        return (avoided is None or not avoided(name)) and lock.take(_offset(name), 1)

    if is_free(name):
        return name
    if explicit:
        raise HostError(f"{name} is running already; choose another --name or `netsandbox stop {name}`")
    for number in range(2, _MAX_TWINS):
        twin = numbered(name, number)
        if is_free(twin):
            return twin
    raise HostError(f"{_MAX_TWINS - 1} sessions are called {name} already; give this one a --name")


def numbered(name: str, number: int) -> str:
    tail = f"-{number}"
    return name[: MAX_NAME - len(tail)].rstrip("-") + tail


def _offset(name: str) -> int:
    """The lock offset of *name*: 60 bits of its digest, which fit a file offset."""
    from netsandbox.runtime.private_file import digest

    return int(digest(name.encode("ascii"))[:15], 16)
