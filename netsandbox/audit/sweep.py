"""Removes the logs of old sessions and the sockets of dead ones. It runs after a command or in a reader, never before
exec.

Only log files, kept output and control sockets without a listener are removed, and a session's directory when that
leaves it empty. A log that a supervisor still holds locked stays, whatever its age, and so does
everything that may still be in use.
"""

from __future__ import annotations

import fcntl
import os
import time

from netsandbox.paths import LOG_NAME, OUTPUT_NAME, STOPPED, list_sessions, session_dir
from netsandbox.runtime.control_socket import CONTROL_NAME, EARLY_NAME, connect

KEEP_SESSIONS = 200
KEEP_BYTES = 2 * 1024**3
BIRTH_SECONDS = 10  # by then a socket either listens or its maker is dead
_TYPE, _SOCKET = 0o170000, 0o140000


def sweep(*, keep_sessions: int = KEEP_SESSIONS, keep_bytes: int = KEEP_BYTES) -> int:
    """Remove what is beyond the newest *keep_sessions* sessions or *keep_bytes*; how many sessions were removed."""
    removed = used = 0
    for age, session in enumerate(list_sessions()):
        directory = session_dir(session)
        forget_dead_control(directory)
        logs = _logs(directory)
        used += sum(size for _, size in logs)
        if age > 0 and (age >= keep_sessions or used > keep_bytes) and not any(is_live(path) for path, _ in logs):
            _remove(directory, logs)
            removed += 1
    return removed


def is_live(path: str) -> bool:
    """Whether a supervisor holds the log at *path*; True also when that cannot be determined."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def forget_dead_control(directory: str) -> None:
    """Remove the control socket in *directory* if its session was killed and could not do so itself."""
    for name in (CONTROL_NAME, EARLY_NAME):
        try:
            connect(directory, name).close()
        except ConnectionRefusedError:
            _forget_socket(directory, name)
        except OSError:  # there is none, or it lives and cannot be connected to
            pass


def _forget_socket(directory: str, name: str) -> None:
    path = os.path.join(directory, name)
    try:
        info = os.lstat(path)
        born = name == CONTROL_NAME or time.time() - info.st_ctime > BIRTH_SECONDS
        if born and info.st_mode & _TYPE == _SOCKET:  # a plain file refuses connections too
            os.unlink(path)
            os.rmdir(directory)
    except OSError:  # the log is there too, as it mostly is, or another was faster
        pass


def _logs(directory: str) -> list[tuple[str, int]]:
    found = []
    try:
        with os.scandir(directory) as entries:
            for item in entries:
                if item.name.startswith((LOG_NAME, OUTPUT_NAME)) and item.is_file(follow_symlinks=False):
                    found.append((item.path, item.stat(follow_symlinks=False).st_size))
    except OSError:
        return []
    return found


def _remove(directory: str, logs: list[tuple[str, int]]) -> None:
    try:
        for path, _ in logs:
            os.unlink(path)
        stopped = os.path.join(directory, f"{LOG_NAME}{STOPPED}")
        if os.path.islink(stopped):
            os.unlink(stopped)
        os.rmdir(directory)
    except OSError:
        # Another part of the session still keeps something there, or another sweep was faster.
        pass
