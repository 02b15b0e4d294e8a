"""Files of a project that have another name outside of it: each gets a copy of its own before the command runs.

uv, pnpm and bun link files of their cache into `.venv` and `node_modules`, and `git clone` of a path links objects. A
command that writes such a file would change it for all who use the other name: the cache, other projects, the host.
Names that all lie in the project, as Cargo's, stay links.

To look at every file takes a while, so the folders in which package managers put something are remembered with their
ctime, which no program can set. As long as they are as they were, a session looks at nothing else for a day. A session
cannot make such a link itself: what it sees outside of the project are other mounts, or closed to it.
"""

from __future__ import annotations

import os
import stat
from errno import EINVAL, ENOENT, ENOSYS, EOPNOTSUPP, EXDEV

from netsandbox.backends.linux.private_folders import change_mark, open_folder
from netsandbox.errors import HostError
from netsandbox.paths import short
from netsandbox.policy.shown_files import MANIFESTS
from netsandbox.runtime.private_file import NEW, replace
from netsandbox.text import single_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FILES = 1_000_000  # that are looked at
MAX_MARKS = 2000
PACKAGES = ("node_modules", "site-packages")  # folders that change with an install
ENVIRONMENTS = (".venv", "node_modules")  # beside a manifest, where an install makes them
# From node_modules: what each install of pnpm and of bun writes.
INSTALLS = (".pnpm", ".modules.yaml", ".pnpm/lock.yaml", "../bun.lock", "../bun.lockb")
CHUNK = 1 << 30  # bytes copied in one call


class LinkedFiles:
    """What a walk through *folders* found: `linked`, by file, its number of names and those in the folders."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.linked: dict[tuple[int, int], tuple[int, list[str]]] = {}
        self.marks: list[str] = []  # nearest first
        self.is_whole = True
        self.seen = 0
        waiting = [(folder, False) for folder in folders]
        for folder, is_package in waiting:
            below = self._look(folder, is_package=is_package)
            are_packages = is_package or os.path.basename(folder) in PACKAGES
            waiting += [(path, are_packages) for path in below]
            if self.seen > MAX_FILES:
                self.is_whole = False
                break

    def _look(self, folder: str, *, is_package: bool) -> list[str]:
        """Returns the folders in *folder*, which may lie in one of packages (*is_package*)."""
        names, below = set[str](), list[str]()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.seen += 1
                    names.add(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        self._note(entry)
        except FileNotFoundError:
            return []
        except OSError:  # nobody can use what is in it now; the next session looks again
            self.is_whole = False
        if not is_package:
            self._mark(folder, names)
        return below

    def _mark(self, folder: str, names: set[str]) -> None:
        if not names.isdisjoint(MANIFESTS):
            self.marks += [f"{folder}/{name}" for name in ENVIRONMENTS]
        if os.path.basename(folder) in PACKAGES:
            self.marks.append(folder)
        if os.path.basename(folder) == "node_modules":
            self.marks += [f"{folder}/{name}" for name in INSTALLS]

    def _note(self, entry: os.DirEntry[str]) -> None:
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:  # it is gone
            return
        if found.st_nlink > 1 and (found.st_uid == os.geteuid() or found.st_mode & 0o022):
            self.linked.setdefault((found.st_dev, found.st_ino), (found.st_nlink, []))[1].append(entry.path)

    def from_outside(self) -> dict[str, list[tuple[str, tuple[int, int]]]]:
        """By folder, the names and files that have another name elsewhere."""
        folders: dict[str, list[tuple[str, tuple[int, int]]]] = {}
        for key, (count, paths) in self.linked.items():
            for path in paths if len(paths) < count else ():
                folder, name = os.path.split(path)
                folders.setdefault(folder, []).append((name, key))
        return folders


def own_copies(folders: Iterable[str], note: str) -> list[str]:
    """Make the copies, and write the *note* by which the next session knows that nothing has changed. Returns lines for
    the user. An error: the command could write to a file of others, so nothing starts."""
    folders = tuple(folders)
    found = LinkedFiles(folders)
    outside, size = found.from_outside(), 0
    for folder, files in outside.items():
        size += _own_copies_in(folder, files)
    lines = []
    if outside:
        count, where = sum(map(len, outside.values())), short(os.path.commonpath([*outside]))
        lines.append(
            f"{count} files in {single_line(where)} had a second name elsewhere, as in a cache of the host; they"
            f" are copies now ({size / 1e6:.0f} MB), so that the command changes only these"
        )
    marks = dict.fromkeys((*(f"{folder}/{name}" for folder in folders for name in ENVIRONMENTS), *found.marks))
    if found.seen and found.is_whole and len(marks) <= MAX_MARKS:  # of an empty folder nothing is remembered
        try:
            replace(note, os.fsencode("".join(f"{path}\0{change_mark(path)}\0" for path in marks)))
        except OSError:  # the next session looks again
            pass
    if found.seen > MAX_FILES:
        lines.append(f"the project has more than {MAX_FILES} files; hard links among the others were not looked at")
    return lines


def _own_copies_in(folder: str, files: list[tuple[str, tuple[int, int]]]) -> int:
    """Put a copy in the place of each of *files*, and return their size. Another session may run in the project, so no
    link is followed, and only a file that was found is copied."""
    name, size = "", 0
    try:
        above = open_folder(folder)
        try:
            for name, key in files:
                size += _own_copy(name, key, above)
        finally:
            os.close(above)
    except OSError as error:
        if error.errno == ENOENT:  # the folder was removed meanwhile
            return size
        raise HostError(
            f"{short(f'{folder}/{name}')!a} has a second name elsewhere, and cannot be copied: {error.strerror}; the"
            " command could change both. Free space, or install its packages again inside of a session"
        ) from None
    return size


def _own_copy(name: str, key: tuple[int, int], above: int) -> int:
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
    except FileNotFoundError:  # it was removed meanwhile
        return 0
    try:
        found = os.fstat(source)
        if (found.st_dev, found.st_ino) == key:
            draft = f".{os.urandom(8).hex()}.netsandbox"
            _copy(source, draft, above, found)
            os.rename(draft, name, src_dir_fd=above, dst_dir_fd=above)
        return found.st_size
    finally:
        os.close(source)


def _copy(source: int, draft: str, above: int, found: os.stat_result) -> None:
    target = os.open(draft, NEW, 0o600, dir_fd=above)
    try:
        while _copy_some(source, target):
            pass
        os.fchmod(target, stat.S_IMODE(found.st_mode) & 0o777)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    except BaseException:
        os.unlink(draft, dir_fd=above)
        raise
    finally:
        os.close(target)


def _copy_some(source: int, target: int) -> int:
    """A clone where the file system can."""
    try:
        return os.copy_file_range(source, target, CHUNK)
    except OSError as error:
        if error.errno not in (EINVAL, ENOSYS, EOPNOTSUPP, EXDEV):  # an old kernel, or one file system over another
            raise
    return os.write(target, os.read(source, 1 << 20))
