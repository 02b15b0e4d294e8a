"""Forgets the logs of old sessions. Run after a command or by a reader, never on the path to exec.

Only log files are removed, and a session's directory when that leaves it empty; a log that a supervisor still holds
locked stays, whatever its age.
"""

from __future__ import annotations

import fcntl
import os

from netsandbox.audit.places import LOG_NAME, list_sessions, session_dir

KEEP_SESSIONS = 200
KEEP_BYTES = 2 * 1024**3


def sweep(*, keep_sessions: int = KEEP_SESSIONS, keep_bytes: int = KEEP_BYTES) -> int:
    """Remove what is beyond the newest *keep_sessions* sessions or *keep_bytes*; how many sessions were removed."""
    removed = used = 0
    for age, session in enumerate(list_sessions()):
        directory = session_dir(session)
        logs = _logs(directory)
        used += sum(size for _, size in logs)
        if age > 0 and (age >= keep_sessions or used > keep_bytes) and not is_live(os.path.join(directory, LOG_NAME)):
            _remove(directory, logs)
            removed += 1
    return removed


def is_live(path: str) -> bool:
    """Whether a supervisor holds the log at *path*; when that cannot be told, it does."""
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


def _logs(directory: str) -> list[tuple[str, int]]:
    found = []
    try:
        with os.scandir(directory) as entries:
            for item in entries:
                if item.name.startswith(LOG_NAME) and item.is_file(follow_symlinks=False):
                    found.append((item.path, item.stat(follow_symlinks=False).st_size))
    except OSError:
        return []
    return found


def _remove(directory: str, logs: list[tuple[str, int]]) -> None:
    try:
        for path, _ in logs:
            os.unlink(path)
        os.rmdir(directory)
    except OSError:
        # Another part of the session still keeps something there, or another sweep was faster.
        pass
