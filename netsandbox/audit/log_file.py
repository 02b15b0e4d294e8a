"""Opens the files that the supervisor writes while a command runs: audit logs, debug logs and HAR files.

- Only a regular file of our own is opened, under one name: a FIFO blocks, a symlink or a hard link planted by an
  earlier command would send records into another file, a device keeps nothing.
- One writer: the file is locked for as long as it is open, since two chains in one file verify as neither.
- An audit log is continued where it ends; any other file that is not empty is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from netsandbox.audit.record_line import GENESIS, MAX_LINE
from netsandbox.errors import NetsandboxError
from netsandbox.runtime.private_file import digest

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_CREAT | os.O_EXCL
_TYPE, _REGULAR = 0o170000, 0o100000
_OPENING = b'{"v":'
AUDIT, DEBUG, HAR = "audit-log", "debug-log", "har"  # the options that name such files
_CALLED = {AUDIT: "audit log", DEBUG: "debug log", HAR: "HAR file"}
_MANY = {AUDIT: " (--audit-log DIRECTORY/)"}
_WHY = {
    errno.ELOOP: "is a symbolic link; give the file it points to",
    errno.EISDIR: "is a directory; give a file in it",
    errno.ENXIO: "is a FIFO or socket; give a regular file",
    errno.ENOSPC: "has no space left; free some or give another place with --{option}",
    errno.EDQUOT: "is over your disk quota; free some or give another place with --{option}",
    errno.EROFS: "is on a read-only file system; give another place with --{option}",
    errno.EACCES: "may not be written; change its permissions or give another place with --{option}",
    errno.EPERM: "may not be written; change its permissions or give another place with --{option}",
    errno.ENOTDIR: "lies below something that is not a directory; correct the path",
    errno.ENAMETOOLONG: "has too long a name; give a shorter one",
}


class LogInUse(NetsandboxError):
    """Another session writes the file."""


class NoDirectory(Exception):
    """A directory of the path does not exist and cannot be made."""


def refusal(path: str, why: str, option: str = AUDIT) -> NetsandboxError:
    return NetsandboxError(f"{_CALLED[option]} {path!a} {why}")


def open_file(path: str, option: str = AUDIT) -> int:
    """A locked descriptor for appending to *path*; the file is made 0600 in directories made 0700."""
    try:
        fd = _open(path)
    except ValueError:
        raise refusal(path, "is not a path; give one without NUL bytes", option) from None
    except NoDirectory as error:
        raise refusal(path, f"{error}; give another place with --{option}", option) from None
    except OSError as error:
        raise refusal(path, _explain(error, option), option) from None
    try:
        _check(fd, path, option)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _explain(error: OSError, option: str) -> str:
    fallback = f"cannot be opened ({error.strerror}); give another place with --{{option}}"
    return _WHY.get(error.errno or 0, fallback).replace("{option}", option)


def _open(path: str) -> int:
    for _ in range(3):
        try:
            return os.open(path, _FLAGS | _NEW, 0o600)
        except FileNotFoundError:
            _make_directories(os.path.dirname(path))
        except FileExistsError:
            try:
                return os.open(path, _FLAGS)
            except FileNotFoundError:
                continue
    return os.open(path, _FLAGS | _NEW, 0o600)


def _make_directories(path: str) -> None:
    if not path or os.path.isdir(path):
        return
    _make_directories(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except (PermissionError, FileNotFoundError) as error:  # the second: file systems of the kernel have only its own
        raise NoDirectory(f"lies in {path!a}, which cannot be made ({error.strerror})") from None


def _check(fd: int, path: str, option: str) -> None:
    info = os.fstat(fd)
    if info.st_mode & _TYPE != _REGULAR:
        raise refusal(path, "is not a regular file; give one, or a path that does not exist yet", option)
    if info.st_uid != os.geteuid():
        raise refusal(path, "belongs to another user; give a file of your own", option)
    if info.st_mode & 0o022:
        raise refusal(path, "can be written by other users; run chmod go-w on it", option)
    if info.st_nlink != 1:
        raise refusal(path, "has several names (hard links); give a path that does not exist yet", option)
    if not _lock(fd):
        own = "give each session its own log"
        raise LogInUse(str(refusal(path, f"is in use by another session; {own}{_MANY.get(option, '')}", option)))


def _lock(fd: int) -> bool:
    # A reader that asks whether the log is live holds the lock for a moment: that must not refuse a run.
    for pause in (0.002, 0.01, 0.05, 0.0):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
        except OSError:
            # Some network file systems know no locks; a second writer then shows up in `audit verify`.
            return True
        else:
            return True
    return False


def read_tail(fd: int, path: str) -> tuple[int, str, bool]:
    """Size, hash that the next line must name, and whether the last line is torn (lacks its newline)."""
    size = os.fstat(fd).st_size
    if size == 0:
        return 0, GENESIS, False
    window = min(size, MAX_LINE + 2)
    data = os.pread(fd, window, size - window)
    torn = not data.endswith(b"\n")
    start = data.rfind(b"\n", 0, len(data) if torn else len(data) - 1) + 1
    last = data[start:] if torn else data[start:-1]
    if (start == 0 and window < size) or not (last.startswith(_OPENING) or (torn and _OPENING.startswith(last))):
        raise refusal(path, "exists and is not an audit log; give a path that does not exist yet")
    return size, digest(last), torn
