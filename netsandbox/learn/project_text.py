"""Writes the project's configuration file, and no other file.

A command that ran in the folder may have changed the file or replaced it by a link. So the folder is held by a
descriptor that was opened before, links are not followed, and a file that has changed is not written.
"""

from __future__ import annotations

import os
import stat

from netsandbox.config.paths import PROJECT_FILE, PROJECT_FILES, project_folders
from netsandbox.errors import HostError, NetsandboxError
from netsandbox.paths import home

MAX_BYTES = 1024 * 1024
UNFINISHED = f"{PROJECT_FILE}.new"


class ProjectText:
    """Create it before the command runs. `text` is the content of the file, "" if there is none; None: it is not
    text."""

    def __init__(self, path: str) -> None:
        self.path = path
        folder, self._name = os.path.split(path)
        try:
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise HostError(f"cannot open {folder!a}: {error.strerror}; work in another folder") from None
        self._before = self._read()
        self.exists = self._before is not None

    @property
    def text(self) -> str | None:
        try:
            return (self._before or b"").decode("utf-8")
        except UnicodeDecodeError:
            return None

    def write(self, text: str) -> None:
        """Replace the file in one step, if it is unchanged."""
        if self._read() != self._before:
            raise NetsandboxError(f"{self.path!a} was changed meanwhile; look at it, and do this again")
        mode = 0o644
        try:
            if self.exists:
                mode = stat.S_IMODE(os.stat(self._name, dir_fd=self._folder, follow_symlinks=False).st_mode)
            self._replace(text.encode("utf-8"), mode)
        except OSError as error:
            raise NetsandboxError(f"cannot write {self.path!a}: {error.strerror}; check the folder") from None

    def close(self) -> None:
        os.close(self._folder)

    def _replace(self, data: bytes, mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            os.unlink(UNFINISHED, dir_fd=self._folder)
        except FileNotFoundError:
            pass
        with open(os.open(UNFINISHED, flags, mode, dir_fd=self._folder), "wb") as file:
            file.write(data)
        os.rename(UNFINISHED, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _read(self) -> bytes | None:
        """None: there is no such file."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(self._name, flags, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NetsandboxError(
                f"{self.path!a} is not a plain file ({error.strerror}); remove it, or write it by hand"
            ) from None
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NetsandboxError(f"{self.path!a} is not a plain file; remove it, or write it by hand")
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise NetsandboxError(f"{self.path!a} is larger than {MAX_BYTES} bytes; write it by hand")
        return data


def project_file_path() -> str:
    """The path of this project's file, which need not exist: beside other files that apply here, else at the root of
    the repository, but in the home folder only if that is the current one."""
    folders = project_folders()
    if not folders:
        raise HostError("the working folder was removed; go to another one")
    for folder in folders:
        if any(os.path.lexists(os.path.join(folder, name)) for name in PROJECT_FILES):
            return os.path.join(folder, PROJECT_FILE)
    is_home = os.path.realpath(folders[-1]) == os.path.realpath(home())
    return os.path.join(folders[0 if is_home else -1], PROJECT_FILE)
