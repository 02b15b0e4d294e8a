"""Files that are kept in a folder that no session can write: private to the user, and written whole or not at all.

SHA-256 is here too, by which such files are named and checked and the lines of a log are chained.
"""

from __future__ import annotations

import os
import sys
from errno import ENOSPC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:  # `hashlib` would load OpenSSL, which costs milliseconds
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        from hashlib import sha256  # an interpreter built without its own

__all__ = ["NEW", "content", "digest", "make_room", "replace", "sha256", "write_new"]

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def digest(data: bytes) -> str:
    """The SHA-256 of *data*: a line of a log without its newline, a file, a key."""
    return sha256(data).hexdigest()


def content(path: str, limit: int) -> bytes:
    """The content of the file, up to *limit*; empty if somebody else could have written it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        state = os.fstat(descriptor)
        ours = state.st_uid == os.getuid() and state.st_mode & 0o170022 == 0o100000
        return os.read(descriptor, limit) if ours else b""
    finally:
        os.close(descriptor)


def replace(path: str, data: bytes, mode: int = 0o600) -> None:
    """Put *data* at *path* in one step; by default nobody else can read it."""
    draft = f"{path}.{os.urandom(8).hex()}"
    write_new(draft, data, mode)
    try:
        os.replace(draft, path)
    except OSError:
        os.unlink(draft)
        raise


def write_new(path: str, data: bytes, mode: int, folder: int | None = None) -> os.stat_result:
    """Make a file, whole or not at all; *path* is relative to the descriptor *folder*, if there is one."""
    descriptor = os.open(path, NEW, mode, dir_fd=folder)
    try:
        if os.fstat(descriptor).st_mode & mode != mode:  # the umask took some of it
            os.fchmod(descriptor, mode)
        if os.write(descriptor, data) != len(data):
            raise OSError(ENOSPC, "there is no room for all of it")
        return os.fstat(descriptor)
    except OSError:
        os.unlink(path, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


def make_room(folder: str, most: int) -> None:
    """Drop the older half of the files in *folder* when there are *most* of them or more."""
    names = os.listdir(folder)
    if len(names) < most:
        return
    paths = sorted((os.path.join(folder, name) for name in names), key=lambda path: os.lstat(path).st_mtime_ns)
    for path in paths[: len(paths) // 2]:
        os.unlink(path)
