"""A place in the log of a running session, and the denials that were recorded after it.

`netsandbox exec` takes the place before its command starts. The supervisor writes a record `session.exec` then. What
comes after it was recorded while the command ran, for any process of the session: a record does not name the command
that a process belongs to. The reader of logs imports much, so it is loaded at the end only.
"""

from __future__ import annotations

import os

from netsandbox.audit.folding import FOLD
from netsandbox.audit.log import DeniedKey, count_denial
from netsandbox.audit.record_line import DENY
from netsandbox.errors import NetsandboxError
from netsandbox.frozen import frozen
from netsandbox.paths import home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from netsandbox.audit.reader import Record

STARTED = "session.exec"
WANTED = (b'"deny"', b'"session.exec"')  # in every line that matters; most lines are not parsed


@frozen
class LogPosition:
    """The end of the log at *path* when it was asked for."""

    path: str
    file: int  # its inode
    size: int


@frozen
class Denied:
    """Counts by the same keys as `AuditLog.denied` and `denied_files`."""

    denied: dict[DeniedKey, int]
    denied_files: dict[tuple[object, ...], int]


def position(path: str) -> LogPosition | None:
    """None: there is no such log."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return LogPosition(path, state.st_ino, state.st_size)


def denied_since(begin: LogPosition, session: str, pid: int) -> Denied:
    """What *session* was denied after *begin* and after the record of the client *pid*."""
    found = Denied({}, {})
    own = os.path.realpath(home())
    for record in _records(begin):
        if record["session"] != session:
            continue
        if record["event"] == STARTED and record.get("by_pid") == pid:
            found = Denied({}, {})
        elif record.get("verdict") == DENY and record["event"] != FOLD:
            times = record.get("count", 1)
            count_denial(found.denied, found.denied_files, record["event"], record, times, own)
    return found


def _records(begin: LogPosition) -> Iterator[Record]:
    """The records of interest. A part of the log that was rotated away meanwhile is left out."""
    from netsandbox.audit.reader import open_log, parse

    try:
        for file in _files(begin):
            with open_log(file) as stream:
                if os.fstat(stream.fileno()).st_ino == begin.file:
                    stream.seek(begin.size)
                for line in stream:
                    if any(word in line for word in WANTED) and (record := parse(line.rstrip(b"\n"), file, 0).record):
                        yield record
    except (NetsandboxError, OSError):  # it was removed
        return


def _files(begin: LogPosition) -> list[str]:
    """The file that *begin* is in and the newer ones; the newest if it is gone."""
    from netsandbox.audit.reader import log_files

    files = log_files(begin.path)
    for number, file in enumerate(files):
        try:
            if os.stat(file).st_ino == begin.file:
                return files[number:]
        except OSError:
            continue
    return files[-1:]
