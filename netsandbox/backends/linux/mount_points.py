"""The empty files and folders in a private home at which rules showed files of the host. They go when the session
ends; otherwise a later session without the rule would find an empty `~/data`, and believe it.

A mount point that another session still uses must stay: removing it would take the mount away there. So sessions that
have such rules hold a lock in common, and only the last one cleans.
"""

from __future__ import annotations

import fcntl
import os
import stat

from netsandbox.backends.linux.private_folders import FOLDER, open_folder


class MountPoints:
    """`paths` are names below the private home *folder*, each with the target if it is a link of ours. No session sees
    *common*, the folder that holds the lock."""

    def __init__(self, common: str, folder: str) -> None:
        self._folder = folder
        self.paths: dict[str, str] = {}
        self._lock = os.open(common, FOLDER)
        fcntl.flock(self._lock, fcntl.LOCK_SH)  # waits at most while another session cleans

    def close(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another session shows something there; it cleans after itself
            pass
        else:
            for path, target in self.paths.items():
                _remove_empty(self._folder, path, target)
        finally:
            os.close(self._lock)


def _remove_empty(folder: str, path: str, target: str) -> None:
    """Remove what is empty at *path*, and the empty folders above it. The session may have left anything there."""
    while path:
        above, _, name = path.rpartition("/")
        try:
            here = open_folder(f"{folder}/{above}")
        except OSError:  # a link, or gone
            return
        try:
            if not _remove_entry(name, here, target):
                return
        except OSError:  # a folder that is not empty
            return
        finally:
            os.close(here)
        path, target = above, ""


def _remove_entry(name: str, above: int, target: str) -> bool:
    info = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISDIR(info.st_mode):
        os.rmdir(name, dir_fd=above)
        return True
    is_empty_file = stat.S_ISREG(info.st_mode) and info.st_size == 0
    if not is_empty_file and not (stat.S_ISLNK(info.st_mode) and target and os.readlink(name, dir_fd=above) == target):
        return False
    os.unlink(name, dir_fd=above)
    return True
