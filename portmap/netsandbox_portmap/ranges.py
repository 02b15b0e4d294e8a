"""Byte ranges of one file, each held by at most one `RangeLock` of any process. Sessions share them as their memory.

Nothing is written to the file; byte N only stands for port N (window.py). The locks belong to the open file description
(F_OFD_SETLK, fcntl(2)), with three effects:

1. Two holders in one process exclude each other too, which the older per-process locks do not do.
2. The kernel frees them with the last descriptor, however the holder ended, so there is nothing to reclaim.
3. A forked child that did not exec shares them: descriptors are close-on-exec, and `close` unlocks for both.

The locks are advisory: a user who can open the shared file can lock all of it. Others then get no windows, and nothing
else happens.

A lock holds an inode, not a path: after the file was removed, the next session makes another file and finds it free.
So the shared file is also locked with flock(2), which keeps systemd-tmpfiles from removing it, and a session holds its
ranges in a file of its user too (`JoinedLocks`), which lies where nobody cleans.
"""

from __future__ import annotations

import errno
import fcntl
import os
from _struct import Struct
from stat import S_ISREG
from time import sleep, time

from netsandbox.system import IS_MACOS

# struct flock and its commands differ between platforms. l_pid must be 0; l_whence is SEEK_SET.
if IS_MACOS:
    _SET, _GET = 90, 92
    _FLOCK = Struct("qqihh")

    def _pack(kind: int, start: int, length: int) -> bytes:
        return _FLOCK.pack(start, length, 0, kind, 0)

    def _unpack(answer: bytes) -> tuple[int, int, int]:
        start, length, _, kind, _ = _FLOCK.unpack(answer)
        return kind, start, length
else:
    _SET, _GET = 37, 36
    _FLOCK = Struct("hhqqi0q")  # 0q: padded as the compiler does

    def _pack(kind: int, start: int, length: int) -> bytes:
        return _FLOCK.pack(kind, 0, start, length, 0)

    def _unpack(answer: bytes) -> tuple[int, int, int]:
        kind, _, start, length, _ = _FLOCK.unpack(answer)
        return kind, start, length


# O_NONBLOCK: opening a planted FIFO must not wait for its other end.
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_SHARED, _PRIVATE = 0o666, 0o600
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.03)  # seconds to wait while another process makes the file
_FRESH = 1.0  # seconds; a file that is older and still refuses us will not change
_REMOVALS = 3  # of the file between opening and locking it; then it is an error


class RangeLock:
    """One open file, and the ranges that are held through it."""

    __slots__ = ("_descriptor", "_held")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held: list[tuple[int, int]] = []

    @classmethod
    def open(cls, path: str, *, shared: bool) -> RangeLock:
        """Open the lock file at *path*, or make it; OSError if that fails or it is not a regular file.

        *shared*: for every user of the host, in a sticky folder such as /tmp.
        """
        mode = _SHARED if shared else _PRIVATE
        for removals in range(_REMOVALS + 1):
            descriptor = _open(path, mode)
            try:
                if shared:
                    _keep_from_cleaners(descriptor)
                if os.fstat(descriptor).st_nlink > 0 or removals == _REMOVALS:
                    _check(descriptor, path, mode)
                    break
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        return cls(descriptor)

    def take(self, start: int, length: int) -> bool:
        """Hold the range; False if any byte of it is held, by this object or another."""
        if start < 0 or length < 1:
            raise ValueError("a range begins at 0 or later and has a length")  # for fcntl, length 0 means up to the end
        if self._own(start, length) is not None:
            return False  # the kernel would succeed: one description never excludes itself
        try:
            fcntl.fcntl(self._descriptor, _SET, _pack(fcntl.F_WRLCK, start, length))
        except OSError as problem:
            if problem.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        self._held.append((start, length))
        return True

    def release(self, start: int, length: int) -> None:
        """Release a range exactly as it was taken; any other range is ignored."""
        if (start, length) not in self._held:
            return
        self._held.remove((start, length))
        fcntl.fcntl(self._descriptor, _SET, _pack(fcntl.F_UNLCK, start, length))

    def obstacle(self, start: int, length: int) -> tuple[int, int] | None:
        """Start and length of a held range that overlaps; adjacent ranges of another holder count as one."""
        own = self._own(start, length)
        if own is not None:
            return own
        answer = fcntl.fcntl(self._descriptor, _GET, _pack(fcntl.F_WRLCK, start, length))
        kind, first, size = _unpack(answer)
        return None if kind == fcntl.F_UNLCK else (first, size)

    def _own(self, start: int, length: int) -> tuple[int, int] | None:
        for first, size in self._held:
            if start < first + size and first < start + length:
                return first, size
        return None

    def close(self) -> None:
        """Release everything. May be called again."""
        descriptor, self._descriptor = self._descriptor, -1
        self._held.clear()
        if descriptor < 0:
            return
        try:
            fcntl.fcntl(descriptor, _SET, _pack(fcntl.F_UNLCK, 0, 0))
        finally:
            os.close(descriptor)


class JoinedLocks:
    """Several lock files as one: a range is held in all of them or in none."""

    __slots__ = ("files",)

    def __init__(self, files: list[RangeLock]) -> None:
        self.files = files

    def take(self, start: int, length: int) -> bool:
        taken: list[RangeLock] = []
        try:
            for file in self.files:
                if not file.take(start, length):
                    break
                taken.append(file)
            else:
                taken = []
                return True
        finally:
            for file in taken:
                file.release(start, length)
        return False

    def release(self, start: int, length: int) -> None:
        for file in self.files:
            file.release(start, length)

    def obstacle(self, start: int, length: int) -> tuple[int, int] | None:
        for file in self.files:
            found = file.obstacle(start, length)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        for file in self.files:
            file.close()


def _open(path: str, mode: int) -> int:
    """Never O_CREAT on an existing file: fs.protected_regular forbids it for files of others in sticky folders."""
    for pause in _PAUSES:
        try:
            return os.open(path, _OPEN)
        except FileNotFoundError:
            made = _make(path, mode)
            if made is not None:
                return made
        except PermissionError:
            if not _is_fresh(path):
                raise
        sleep(pause)
    return os.open(path, _OPEN)


def _make(path: str, mode: int) -> int | None:
    try:
        return os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return None  # another process was faster


def _is_fresh(path: str) -> bool:
    """Whether the process that made the file may not have reached `_check` yet."""
    try:
        return time() - os.lstat(path).st_ctime < _FRESH
    except OSError:
        return True  # it was removed


def _keep_from_cleaners(descriptor: int) -> None:
    """The check of the name follows. A cleaner that holds the file may be about to remove it, so it gets a moment; but
    anybody may hold it for ever, and that keeps no session from its start."""
    for pause in _PAUSES:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(pause)
        except OSError:  # there is no flock here
            return None
    return None


def _check(descriptor: int, path: str, mode: int) -> None:
    found = os.fstat(descriptor)
    if not S_ISREG(found.st_mode) or found.st_nlink != 1:  # two names: a hard link to another user's file
        raise OSError(errno.EINVAL, "not a plain file with one name", path)
    if found.st_uid == os.geteuid() and found.st_mode & 0o777 != mode:
        os.fchmod(descriptor, mode)  # the umask changed a new file's mode, or its maker was killed before this line
    os.utime(descriptor)  # cleaners of /tmp remove files that were not touched for days
