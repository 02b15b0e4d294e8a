"""The folders of ours that a session in the mode `project` writes instead of the host's: its home, and its caches.

    <state>/homes/<project>/home               the home inside, kept between the sessions of a project
    <state>/homes/shared/fresh/0               the home of a session with --fresh-home, empty at its start and its end
    <state>/homes/shared/settings              settings of package managers without their credentials
    <state>/homes/<project>/<variable>         what XDG_CACHE_HOME and the like name, where they lie outside of the home
    <state>/homes/<project>/caches/<path>/0    what sessions added to a cache of the host; 1, 2 … while 0 is in use
    <state>/homes/<project>/scratch/<path>/0   what a session changed in a folder of the host's tools
    <state>/homes/<project>/git/0              copies of git's configuration files, while a session runs
    <state>/homes/<project>/repositories       those of a large project, and in another file its folders
    <state>/homes/<project>/links              folders of packages as they were when `linked_files` looked

A session leaves behind what it likes in them, so links there are never followed.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time
from errno import EFBIG, EINVAL, ENOSPC

from netsandbox.errors import HostError
from netsandbox.paths import is_made, memory_home, short, unusable
from netsandbox.runtime.private_file import content, digest
from netsandbox.runtime.written_folders import remember_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from netsandbox.backends.linux.mount_points import MountPoints
    from netsandbox.backends.linux.session_root import SessionRoot

ASIDE = ".netsandbox"  # the end of a name that no program of the host obeys
LINKS_KEPT_FOR = 24 * 3600  # seconds
MAX_NOTE = 1 << 20
UNSETTLED = "unsettled"  # in the state home: notes of sessions that run (`unsettled`)
NOTE_GROUP, NOTE_FIELD = "\0\n\0", "\0"  # between the parts of one
MAX_SLOTS = 64  # sessions at once that use one cache
LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe keeps nobody waiting
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# This user may have no right to list it. A Mac imports this module, but has no such flag.
ON_THE_WAY = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PrivateFolders:
    """Those of one project. The locks on its caches are held until the object is closed."""

    def __init__(self, state: str, project: str, *, fresh: bool = False) -> None:
        self.state = os.path.realpath(state)
        self._project = project
        self._own = self._folder_of(project)
        self._shared = os.path.join(self.state, "homes", "shared")
        self._locks: list[int] = []
        self._mount_points: MountPoints | None = None
        self._note: str | None = None
        self._fresh = self._emptied() if fresh else None

    def _folder_of(self, project: str) -> str:
        name = "".join(char if char.isalnum() else "-" for char in os.path.basename(project))[:40]
        return os.path.join(self.state, "homes", f"{name or 'root'}-{digest(os.fsencode(project))[:16]}")

    def remember_written(self, path: str) -> None:
        """Note that this session can write at the real path *path*, before the command runs."""
        remember_written(path)

    @property
    def repositories(self) -> str:
        """A file for the repositories of a large project (`runtime.project`)."""
        return os.path.join(self._made(self._own), "repositories")

    @property
    def settings(self) -> str:
        """A folder for settings of package managers without credentials (`settings_copies`)."""
        return self._made(os.path.join(self.state, "homes", "shared", "settings"))

    @property
    def links_to_break(self) -> str | None:
        """The note for `linked_files`; None while what it says still holds."""
        path = os.path.join(self._made(self._own), "links")
        try:
            if 0 <= time.time() - os.stat(path).st_mtime < LINKS_KEPT_FOR:
                words = os.fsdecode(content(path, MAX_NOTE)).split("\0")
                if len(words) > 1 and all(map(_is_marked, words[:-1:2], words[1::2])):
                    return None
        except (OSError, ValueError):  # there is none yet
            pass
        return path

    @property
    def empty_file(self) -> str:
        """An empty file of this user: what keeps a session from writing it is its mount, which is then recorded."""
        return self._made_file("nothing", 0o600)

    @property
    def closed_file(self) -> str:
        """A file that nobody may open, root without capabilities included: what covers a hidden file, so that a reader
        gets an error. Its mount is read-only, so its owner cannot change its mode."""
        return self._made_file("closed", 0)

    def _made_file(self, name: str, mode: int) -> str:
        path = os.path.join(self._made(os.path.join(self.state, "homes")), name)
        try:
            if not os.path.lexists(path):
                os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode))
        except OSError as error:
            raise unusable(f"cannot make {path}", error) from None
        return path

    @property
    def empty_folder(self) -> str:
        return self._made(os.path.join(self.state, "homes", "empty"))

    @property
    def is_kept(self) -> bool:
        """Whether the home stays for the next session."""
        return self._fresh is None

    @property
    def kept_home(self) -> str:
        """The home that is kept; it may not exist yet."""
        return os.path.join(self._own, "home")

    @property
    def home(self) -> str:
        self._made(self._own)
        return self._made(self.kept_home if self._fresh is None else os.path.join(self._fresh, "home"))

    def moved(self, variable: str) -> str:
        return self._made(os.path.join(self._fresh or self._own, variable))

    def _emptied(self) -> str:
        """A folder that no other session uses now, without what a session that was killed left in it."""
        folder = os.path.join(self._slot(os.path.join(self._shared, "fresh"), "a fresh home"), "data")
        remove_tree(folder)
        return self._made(folder)

    def cache(self, path: str) -> str:
        """A folder for the changes to the cache *path*, which no other session uses now."""
        base = os.path.join(self._own, "caches", digest(os.fsencode(path))[:16])
        return self._slot(base, f"the cache {path!a}")

    def copy(self, path: str) -> str:
        """The same for the folder of an agent; a fresh home begins with an empty one."""
        if self._fresh is None:
            return self.cache(path)
        base = os.path.join(self._fresh, "copies", digest(os.fsencode(path))[:16])
        for name in ("data", "work"):
            self._made(os.path.join(base, name))
        return base

    def scratch(self, path: str) -> str:
        """The same for changes that go with the session. They are removed by the next one, killed or not."""
        base = os.path.join(self._own, "scratch", digest(os.fsencode(path))[:16])
        folder = self._slot(base, f"{path!a}")
        remove_tree(os.path.join(folder, "data"))
        self._made(os.path.join(folder, "data"))
        return folder

    def git_copies(self) -> str:
        """An empty folder for copies of git's configuration files, which no other session uses now."""
        folder = self._slot(os.path.join(self._own, "git"), "this project")
        for name in os.listdir(folder):
            if name.startswith("copies-"):
                try:
                    remove_tree(f"{folder}/{name}")
                except (OSError, RecursionError):  # a session made that hard; it is in nobody's way
                    continue
        return self._made(f"{folder}/copies-{os.urandom(8).hex()}")

    def git_lock(self, path: str) -> int:
        """A descriptor of the git directory *path*. All sessions that see it hold a lock on it, of all users. It is a
        read lock, which no command can keep out: a write lock needs a descriptor for writing, and folders have none."""
        try:
            folder = open_folder(path)
            self._locks.append(folder)
            turn = self.git_turn()
            try:
                fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _lock(fcntl.F_RDLCK))
            finally:
                os.close(turn)
            return folder
        except OSError as error:
            advice = f"leave it unprotected with --allow-write {short(path)}"
            raise HostError(f"cannot lock {path!a}, to protect it: {error.strerror}; {advice}") from None

    def git_turn(self) -> int:
        """Wait until no other session of this user, with whatever state home, takes or leaves a git directory. It is
        this one's turn until the descriptor is closed. No session sees that folder."""
        memory = memory_home()
        turn = os.open(memory if is_made(memory) else self.state, FOLDER & ~os.O_NOFOLLOW)
        fcntl.flock(turn, fcntl.LOCK_EX)
        return turn

    def _slot(self, base: str, what: str) -> str:
        self._made(base)
        for slot in range(MAX_SLOTS):
            folder = os.path.join(base, str(slot))
            for name in ("data", "work"):
                self._made(os.path.join(folder, name))
            lock = os.open(os.path.join(folder, "lock"), LOCK, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                continue
            self._locks.append(lock)
            return folder
        raise HostError(f"more than {MAX_SLOTS} sessions use {what} now; end some of them")

    def clear_way(self, home: str, root: SessionRoot) -> None:
        """Remove what earlier sessions left where this one mounts something in its home: a link there, or a file where
        a folder is needed, would lead the mount elsewhere or make it fail."""
        top = open_folder(self.home)
        try:
            for path, entry in root.entries.items():
                held = root.holder(path)
                if held is not None and held[0] == home and entry.kind != "link":
                    is_folder = entry.kind != "show" or os.path.isdir(entry.source)
                    _clear(top, path[len(home) + 1 :].split("/"), is_folder=is_folder)
        finally:
            os.close(top)

    def clean_later(self, paths: Mapping[str, str]) -> None:
        """Remove the mount points at *paths* in the home when the session has ended; see `mount_points`."""
        from netsandbox.backends.linux.mount_points import MountPoints

        if self._mount_points is None:
            self._mount_points = MountPoints(self._own, self.home)
        self._mount_points.paths.update(paths)

    def note_unsettled(self, *groups: Iterable[str]) -> None:
        """Leave a note until the end of this session, for the case that its supervisor is killed (`unsettled`). It is
        locked before it has its name: a note without a lock is one of a session that was killed."""
        folder = self._made(os.path.join(self.state, UNSETTLED))
        path = os.path.join(folder, os.urandom(8).hex())
        draft = os.path.join(folder, f".{os.path.basename(path)}")
        try:
            lock = os.open(draft, LOCK | os.O_EXCL, 0o600)
            self._locks.append(lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            note = NOTE_GROUP.join(NOTE_FIELD.join(group) for group in groups).encode("utf-8", "surrogateescape")
            if os.write(lock, note) != len(note):
                raise OSError(ENOSPC, "there is no room for all of it")
            os.rename(draft, path)
        except OSError as error:
            raise unusable(f"cannot write in {folder}", error) from None
        self._note = path

    def close(self) -> None:
        if self._note is not None:
            try:
                os.unlink(self._note)
            except FileNotFoundError:  # the state home was removed
                pass
            self._note = None
        if self._mount_points is not None:
            self._mount_points.close()
            self._mount_points = None
        if self._fresh is not None:
            try:
                remove_tree(self._fresh)
            except (OSError, RecursionError):  # the next session with a fresh home tries again
                pass
            self._fresh = None
            self._forget_empty_project()
        while self._locks:
            os.close(self._locks.pop())

    def _forget_empty_project(self) -> None:
        """A project in which nothing was left, as that of a query of a registry, is not a project to remember."""
        try:
            if not os.listdir(self._project):
                os.rmdir(self._own)
        except OSError:  # it keeps something, or is gone
            pass

    def _made(self, folder: str) -> str:
        if os.path.isdir(folder):
            return folder
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
        except OSError as error:
            raise unusable(f"cannot make {folder}", error) from None
        return folder


def change_mark(path: str) -> str:
    """Changes with the entries of a folder, and when it is exchanged. What is missing has one too."""
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_ino}.{found.st_ctime_ns}"


def _is_marked(path: str, mark: str) -> bool:
    return change_mark(path) == mark


def is_last(git: int) -> bool:
    """Whether nobody else holds a lock on a git directory. The lock of this session is given up."""
    found = fcntl.fcntl(git, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK))
    fcntl.fcntl(git, fcntl.F_OFD_SETLK, _lock(fcntl.F_UNLCK))
    return found.startswith(_lock(fcntl.F_UNLCK)[:2])


def _lock(kind: int) -> bytes:
    """`struct flock` for a lock on a whole file (fcntl(2))."""
    return kind.to_bytes(2, sys.byteorder) + bytes(30)


def open_folder(path: str, root: int | None = None) -> int:
    """A descriptor of a folder, below the folder *root* if that is given; an OSError if a link is on the way."""
    names = [name for name in path.split("/") if name]
    here = os.open("/", FOLDER) if root is None else os.dup(root)
    for number, name in enumerate(names, 1):
        above = here
        try:
            here = os.open(name, FOLDER if number == len(names) else ON_THE_WAY, dir_fd=above)
        finally:
            os.close(above)
    return here


def read_file(path: str, limit: int) -> bytes:
    """The content of a plain file; an OSError if it is none or larger, or a link is on the way."""
    folder, name = os.path.split(path)
    above = open_folder(folder)
    try:
        descriptor = os.open(name, READ, dir_fd=above)
    finally:
        os.close(above)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(EINVAL, "it is not a regular file")
    with open(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(EFBIG, f"it has more than {limit >> 20} MB")
    return data


def move_aside(name: str, here: int) -> str:
    """Rename an entry of the folder *here*, so that no program obeys it. Returns the new name."""
    new = f"{name}{ASIDE}"
    if os.access(new, os.F_OK, dir_fd=here, follow_symlinks=False):
        new += f"-{os.urandom(4).hex()}"
    state = os.fstat(here)
    if not state.st_mode & stat.S_IWUSR:  # a command may have taken the right away
        os.chmod(f"/proc/self/fd/{here}", stat.S_IMODE(state.st_mode) | stat.S_IRWXU)
    os.rename(name, new, src_dir_fd=here, dst_dir_fd=here)
    return new


def _clear(top: int, names: list[str], *, is_folder: bool) -> None:
    """Remove the first of *names*, each in the one before it, that is not a folder, or a folder where a file is needed.
    Another session of the project may exchange them meanwhile, so no path is looked up twice."""
    here = os.dup(top)
    try:
        for number, name in enumerate(names, 1):
            mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode) or stat.S_ISDIR(mode) != (is_folder or number < len(names)):
                remove_all(name, here)
                return
            if number < len(names):
                above, here = here, os.open(name, ON_THE_WAY, dir_fd=here)
                os.close(above)
    except OSError:  # it is missing, or was exchanged: then the mount fails, and nothing starts
        return
    finally:
        os.close(here)


def remove_tree(path: str) -> None:
    """Remove a file, a link or a folder with all in it. A link is never followed, not even one that is made now."""
    folder, name = os.path.split(path)
    above = open_folder(folder)
    try:
        remove_all(name, above)
    finally:
        os.close(above)


def remove_all(name: str, above: int) -> None:
    waiting = [name]
    for each in waiting:
        waiting += _remove(each, above)


def _remove(name: str, above: int) -> list[str]:
    """Remove a file, or a folder without the folders in it. Those are moved to *above*, as a tree may be deeper than
    any recursion; returns their names there."""
    moved: list[str] = []
    try:
        os.unlink(name, dir_fd=above)
    except IsADirectoryError:
        here = _writable_folder(name, above)
        try:
            for each in os.listdir(f"/proc/self/fd/{here}"):
                try:
                    os.unlink(each, dir_fd=here)
                except IsADirectoryError:
                    os.close(_writable_folder(each, here))
                    moved.append(f".removed-{os.urandom(8).hex()}")
                    os.rename(each, moved[-1], src_dir_fd=here, dst_dir_fd=above)
        finally:
            os.close(here)
        os.rmdir(name, dir_fd=above)
    except FileNotFoundError:
        pass
    return moved


def _writable_folder(name: str, above: int) -> int:
    here = os.open(name, ON_THE_WAY, dir_fd=above)
    os.chmod(f"/proc/self/fd/{here}", 0o700)
    return here
