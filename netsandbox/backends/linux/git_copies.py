"""Configuration files of git on the host: the copy that a session gets of one, and how one is read and made there.

No link is followed, and a new file is written among the hooks, where no session can open it before it is in its place.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG

from netsandbox.backends.linux.private_folders import open_folder
from netsandbox.runtime.private_file import write_new

TYPE_CHECKING = False
if TYPE_CHECKING:
    Identity = tuple[int, int, int]

MAX_CONFIG = 1 << 20  # bytes of a file that is read
DRAFT = "netsandbox-"
SAME_FOLDER = b".\n"  # the content of a `commondir` that means nothing


class Copied:
    """A configuration file of the host, and its copy that the session changes. `drafts` is the folder of the hooks."""

    def __init__(self, path: str, copy: str, base: bytes, state: os.stat_result, drafts: str) -> None:
        self.path = path
        self.copy = copy
        self.base = base  # as the session got it
        self.known = base  # as the host has it now
        self.mode = stat.S_IMODE(state.st_mode)
        self.own = identity(state)
        self.drafts = drafts
        self.marks: list[str] = []  # second names of files that this session put there

    def is_own(self) -> bool:
        """Whether the file on the host is the one that it was at the start, or a copy that was put there while this
        session was stopped."""
        return self.own == identity(os.lstat(self.path))

    def adopts(self) -> bool:
        """Whether another session put its copy there, which has a second name among the hooks. The caller knows that
        this session was stopped meanwhile: otherwise its command may have opened that copy."""
        state = os.lstat(self.path)
        try:
            marked = os.lstat(f"{self.drafts}/{DRAFT}{state.st_ino}")
        except OSError:
            return False
        if not os.path.samestat(state, marked):
            return False
        self.own = identity(state)
        return True


def identity(state: os.stat_result) -> Identity:
    """Of a file that nobody has changed; numbers of files alone are used again."""
    return state.st_dev, state.st_ino, state.st_ctime_ns


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


def make(folder: int, name: str, content: bytes, drafts: str) -> None:
    """Make a file in one step. It is written in *drafts*, the folder of the hooks, where no session can open it before
    it is in its place; at its place where that folder takes no such file."""
    try:
        here = open_folder(drafts)
        try:
            draft = f"{DRAFT}{os.urandom(8).hex()}"
            write_new(draft, content, 0o644, here)
            try:
                os.link(draft, name, src_dir_fd=here, dst_dir_fd=folder)
            finally:
                os.unlink(draft, dir_fd=here)
        finally:
            os.close(here)
    except FileExistsError:
        raise
    except OSError:
        write_new(name, content, 0o644, folder)
