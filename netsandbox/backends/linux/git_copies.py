"""Files of git on the host that a session could have chosen: how one is read and made.

No link is followed. `Copied` is a configuration file as it was before the session, and the copy that a session gets.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG

from netsandbox.backends.linux.private_folders import ASIDE
from netsandbox.runtime.private_file import write_new

MAX_CONFIG = 1 << 20  # bytes of a file that is read
SAME_FOLDER = b".\n"  # the content of a `commondir` that means nothing


class Copied:
    """A configuration file of the host. `base` is its content before the session, `copy` the file that the session
    changes instead."""

    def __init__(self, path: str, copy: str, base: bytes, state: os.stat_result | None) -> None:
        self.path = path
        self.copy = copy
        self.base = base
        self.mode = stat.S_IMODE(state.st_mode) if state is not None else 0o644
        self.links = state.st_nlink if state is not None else 1


def read_file(path: str, folder: int | None = None, most: int = MAX_CONFIG) -> bytes:
    """The content of a plain file that is not a link and not too large; an OSError otherwise."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > most:
            raise OSError(EFBIG, f"it is not a plain file of at most {most} bytes")
        return os.read(descriptor, min(most, state.st_size + 1))
    finally:
        os.close(descriptor)


def make(folder: int, name: str, content: bytes) -> None:
    """Make a file in one step: another session that begins now finds none or the whole of it."""
    draft = f"{name}{ASIDE}-{os.urandom(8).hex()}"
    write_new(draft, content, 0o644, folder)
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.unlink(draft, dir_fd=folder)


def make_writable(folder: int) -> None:
    state = os.fstat(folder)
    if not state.st_mode & stat.S_IWUSR:  # a command may have taken the right away
        os.fchmod(folder, stat.S_IMODE(state.st_mode) | stat.S_IRWXU)


def unlock(path: str) -> bool:
    """Give back the rights to a folder that a command took away: git could enter it by name, or the user gives them
    back later. Whether there was a need; an OSError if that is not possible."""
    state = os.lstat(path)
    if not stat.S_ISDIR(state.st_mode) or os.access(path, os.R_OK | os.X_OK):
        return False
    os.chmod(path, stat.S_IMODE(state.st_mode) | stat.S_IRWXU)
    return True
