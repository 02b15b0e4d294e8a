"""The end of sessions whose supervisor was killed: what they left in their project is made harmless later.

    <state>/unsettled/<number>     of each session that runs: its project, and what is not new in it

A session writes the note before its command runs, holds a lock on it, and removes it when its end is done. A note
without a lock is of a supervisor that was killed, by the kernel for want of memory for instance. The next session of
this user, `ps` and `doctor` then do what its end would have done with new names and new repositories. What a session
may change of files that existed lies in copies (namespaces), or stays changed (broker).
"""

from __future__ import annotations

import fcntl
import os
import time

from netsandbox.backends.linux.private_folders import NOTE_FIELD, NOTE_GROUP, UNSETTLED
from netsandbox.frozen import frozen
from netsandbox.paths import short
from netsandbox.runtime.private_file import content
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_NOTE = 16 << 20
DYING = 1.5  # seconds until no process of a session is left whose supervisor was killed (keeper.h)


class Killed:
    """A session whose supervisor was killed, as far as `NewRepositories` looks at one."""

    def __init__(self, note: bytes) -> None:
        from netsandbox.runtime.project import Project, Repositories

        groups = [text.split(NOTE_FIELD) if text else [] for text in _text(note).split(NOTE_GROUP)]
        (folder, git, since), missing, found, entries, self.opened, held, known, closed, hooks = groups
        self.project = Project(folder, git or None) if folder else None
        self.since = float(since)
        self.missing = _pairs(missing)
        self.repositories = Repositories(tuple(found))
        self.git = KnownGit(dict(zip(found, entries, strict=False)), _pairs(held), known)
        self.git.closed, self.git.relative_hooks = closed, hooks


class KnownGit:
    """What was known of its repositories: what was at their paths, their git directories, and those with a
    configuration."""

    def __init__(self, entries: dict[str, str], held: dict[str, str], known: list[str]) -> None:
        from netsandbox.backends.linux.git_files import entry_at

        now = {path: entry_at(path) for path in entries}
        self.entries = {path: entry for path, entry in now.items() if repr(entry) == entries[path]}
        self.held = held
        self.copied = [KnownFile(f"{folder}/config") for folder in known]
        self.closed: list[str] = []
        self.relative_hooks: list[str] = []

    def is_held(self, folder: str) -> bool:
        """Whether the git directory is the one that it was at the start."""
        try:
            state = os.lstat(folder)
        except OSError:
            return False
        return self.held.get(folder) == f"{state.st_dev}:{state.st_ino}"


@frozen
class KnownFile:
    path: str


def _pairs(texts: list[str]) -> dict[str, str]:
    return dict(zip(texts[::2], texts[1::2], strict=True))


def settle_killed(state: str) -> list[str]:
    """Look after all killed sessions of the state home *state*. Returns lines for the user."""
    lines: list[str] = []
    for number, (path, lock) in enumerate(_killed(f"{state}/{UNSETTLED}")):
        try:
            if not number:
                time.sleep(DYING)
            lines += _settle(path, state)
            os.unlink(path)
        finally:
            os.close(lock)
    return lines


def _killed(folder: str) -> Iterator[tuple[str, int]]:
    """The notes that no session holds, each with a lock on it."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:  # there is none, or the state is another user's
        return
    for name in names:
        try:
            lock = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # its session has ended just now
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # it runs
            os.close(lock)
            continue
        if os.path.lexists(f"{folder}/{name}"):
            yield f"{folder}/{name}", lock
        else:
            os.close(lock)


def _settle(path: str, state: str) -> list[str]:
    from netsandbox.backends.linux.held_names import hold_back

    try:
        killed = Killed(content(path, MAX_NOTE))
    except (OSError, ValueError):
        return [
            "a session was killed, and what it left cannot be found: its note is damaged; look at its project first"
        ]
    lines = hold_back(killed.missing, state)
    if killed.project is not None:
        lines += _repositories(killed)
    where = single_line(short(killed.project.folder)) if killed.project is not None else "no project"
    return [f"after a session that was killed ({where}): {line}" for line in lines]


def _repositories(killed: Killed) -> list[str]:
    from netsandbox.backends.linux.new_repositories import NewRepositories
    from netsandbox.backends.linux.project_results import MAX_LOCKED, MAX_SEARCHED, unlocked
    from netsandbox.runtime.project import later_repositories

    assert killed.project is not None
    for _ in range(MAX_LOCKED):
        found = later_repositories(killed.project.folder, killed.repositories.found, killed.since, MAX_SEARCHED)
        if not unlocked(found):
            break
    return NewRepositories(killed, lambda path: False).settle(found)  # type: ignore[arg-type]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
