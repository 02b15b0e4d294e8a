"""The folders that sessions could write. A file in one of them is trusted only if it is older than these sessions.

    <memory home>/written/<digest of the real path>    when the first such session began, in nanoseconds; the time of
                                                       the file itself is that of the last one

A mark is made before the command runs, for the project, for each path that a rule opens, and for `/` if the session is
not confined to such folders (`--files open`, and every session on a Mac, where tools share the host's caches). For a
file that the user lets it write later, a mark is made before that file is opened. No session sees the marks (INV-8),
and they outlive the state home. A session holds a shared lock on its marks until it ends, with whatever state home.
"""

from __future__ import annotations

import fcntl
import os
import time

from netsandbox.paths import WRITTEN, first_session, has_fixed_home, is_made, memory_home, state_home, unusable
from netsandbox.runtime.private_file import NEW, digest, write_new

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

EVERYWHERE = "/"
ALWAYS = 1 << 63  # the last time of a session that may still run
_MAX_DIGITS = 20
_OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_held: list[int] = []  # the marks of this process's session


def remember_written(path: str) -> None:
    """Note that a session can write at *path*, a real path, and below. It runs until `release_written`."""
    if not os.path.isdir(memory_home()):
        is_made(memory_home())
    mark = os.path.join(_folder(), _name(path))
    try:
        try:
            descriptor = os.open(mark, _OPEN)
        except FileNotFoundError:
            _make(mark)
            descriptor = os.open(mark, _OPEN)
        _held.append(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        _note_first(descriptor)  # the clock may have been set back
        os.utime(descriptor)  # with the lock: who finds no lock later than this time knows that the session has ended
    except OSError as error:
        raise unusable(f"cannot note that {path!a} can be written in {mark}", error) from None


def release_written() -> None:
    """The session of this process has ended."""
    while _held:
        os.close(_held.pop())


def is_held(path: str) -> bool:
    """Whether a session that still runs could write at *path*; True also where that is not known."""
    for mark in _marks(path):
        try:
            descriptor = os.open(mark, _OPEN)
        except FileNotFoundError:
            continue
        except OSError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
    return False


def forget_written(path: str) -> None:
    """Remove the mark of a folder that is gone, and that nobody else could have used."""
    try:
        os.unlink(os.path.join(_folder(), _name(path)))
    except OSError:
        pass


def is_written(path: str) -> bool:
    """Whether a session could write at *path* by a rule of its own, or as its project."""
    return any(os.path.lexists(os.path.join(folder, _name(path))) for folder in _folders())


def writers(path: str) -> Iterator[tuple[int, int]]:
    """The times of the first and the last session that could write *path*, for each mark at it or above."""
    if _are_lost() and (first := first_session()) is not None:
        yield first, ALWAYS  # the marks were lost
    for mark in _marks(path):
        try:
            yield _times(mark)
        except FileNotFoundError:
            continue


def _marks(path: str) -> Iterator[str]:
    """The places of the marks at *path* and above."""
    folders = _folders()
    while True:
        yield from (os.path.join(folder, _name(path)) for folder in folders)
        if path == "/":
            return
        path = os.path.dirname(path)


def _folder() -> str:
    """In the memory home; in the state home where that cannot be made or written."""
    memory = memory_home()
    return os.path.join(memory if os.path.isdir(memory) and not has_fixed_home() else state_home(), WRITTEN)


def _folders() -> tuple[str, ...]:
    """All that are read: the memory home's counts too while it cannot be written."""
    return tuple(dict.fromkeys((_folder(), os.path.join(memory_home(), WRITTEN))))


def _are_lost() -> bool:
    return not any(map(os.path.isdir, _folders()))


def _name(path: str) -> str:
    return digest(os.fsencode(path))[:32]


def _make(mark: str) -> None:
    if not os.path.isdir(os.path.dirname(mark)):
        _make_folder(os.path.dirname(mark))
    try:
        descriptor = os.open(mark, NEW, 0o600)
    except FileExistsError:  # another session of this moment
        return
    try:
        _write_first(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: str) -> None:
    """If the marks were lost, with one for everything since the first session, which would be forgotten otherwise."""
    draft = f"{folder}.{os.urandom(8).hex()}"
    os.makedirs(draft, 0o700)
    if _are_lost() and (first := first_session()) is not None:
        write_new(os.path.join(draft, _name(EVERYWHERE)), str(first).encode("ascii"), 0o600)
    try:
        os.rename(draft, folder)
    except OSError:
        for name in os.listdir(draft):
            os.unlink(os.path.join(draft, name))
        os.rmdir(draft)
        if not os.path.isdir(folder):  # else another session was faster
            raise


def _write_first(descriptor: int) -> None:
    """Files are compared with the time, and their clock is a little behind."""
    os.pwrite(descriptor, str(min(time.time_ns(), os.fstat(descriptor).st_ctime_ns)).encode("ascii"), 0)


def _note_first(descriptor: int) -> None:
    """Write the present time if the noted one has not come yet: the clock was wrong then, or is now."""
    written = os.pread(descriptor, _MAX_DIGITS, 0)
    if written.isdigit() and int(written) > time.time_ns():
        os.ftruncate(descriptor, 0)
        _write_first(descriptor)


def _times(mark: str) -> tuple[int, int]:
    """Those of a mark; of a damaged one, or of one whose time has not come yet, all times (INV-1)."""
    with open(mark, "rb") as file:
        try:
            first, last = int(file.read(_MAX_DIGITS)), os.fstat(file.fileno()).st_mtime_ns
        except (OSError, ValueError):
            return 0, ALWAYS
    return (first, last) if max(first, last) <= time.time_ns() else (0, ALWAYS)
