"""The private temporary folder of a session: TMPDIR names it, and it is removed at the end.

Its path is short, since programs put sockets there and a socket's path has at most 107 bytes (unix(7)). The session
holds a lock on the folder, so that the next one finds and removes what a killed session left.
"""

from __future__ import annotations

import fcntl
import os

from netsandbox.backends.linux.private_folders import FOLDER, remove_tree
from netsandbox.errors import HostError
from netsandbox.runtime.real_paths import names_in

PREFIX, DIGITS = "netsandbox-", 12  # the name of such a folder, and the hexadecimal digits after that
RUNTIME = "run"  # in it, what XDG_RUNTIME_DIR names
MAX_TRIES = 16
DEFAULT = "/tmp"  # noqa: S108 (a folder with a random name is made in it)


class TemporaryFolder:
    """*wanted* is the host's TMPDIR, which may be empty or useless."""

    def __init__(self, wanted: str) -> None:
        base = os.path.realpath(wanted if _is_usable(wanted) else DEFAULT)
        _sweep(base)
        self.path, self._lock = _made(base)
        try:
            os.mkdir(f"{self.path}/{RUNTIME}", 0o700)
        except OSError as error:
            self.close()
            raise _no_folder(base, error) from None

    @property
    def runtime(self) -> str:
        return f"{self.path}/{RUNTIME}"

    def close(self) -> None:
        """Remove the folder. The command has ended."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1


def _is_usable(path: str) -> bool:
    return path.startswith("/") and os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)


def _made(base: str) -> tuple[str, int]:
    """A new folder and the descriptor that locks it. Another session may sweep it away before it is locked."""
    for _ in range(MAX_TRIES):
        path = f"{base.rstrip('/')}/{PREFIX}{os.urandom(DIGITS // 2).hex()}"
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        except OSError as error:
            raise _no_folder(base, error) from None
        lock = _locked(path)
        if lock is not None:
            return path, lock
    raise HostError(f"cannot make a temporary folder in {base}: others take each name; set TMPDIR to another folder")


def _locked(path: str) -> int | None:
    """None: it is gone, or another process has it."""
    try:
        lock = os.open(path, FOLDER)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.lstat(path)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _sweep(base: str) -> None:
    """Remove the folders of this user's sessions that were killed."""
    for name in names_in(base):
        path = f"{base.rstrip('/')}/{name}"
        if _is_ours(name) and _is_own_folder(path):
            lock = _locked(path)
            if lock is not None:
                _remove(path)
                os.close(lock)


def _is_ours(name: str) -> bool:
    random = name.removeprefix(PREFIX)
    return name.startswith(PREFIX) and len(random) == DIGITS and all(char in "0123456789abcdef" for char in random)


def _is_own_folder(path: str) -> bool:
    try:
        state = os.lstat(path)
    except OSError:
        return False
    return state.st_uid == os.geteuid() and state.st_mode & 0o170777 == 0o040700


def _remove(path: str) -> None:
    try:
        remove_tree(path)
    except (OSError, RecursionError):  # the command made that hard; the next session tries again
        pass


def _no_folder(base: str, error: OSError) -> HostError:
    return HostError(f"cannot make a folder in {base}: {error.strerror}; free space, set TMPDIR, or use --share-tmp")
