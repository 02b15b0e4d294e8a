"""The names of sessions by their logs: for those that have ended, or do not answer.

A session has the name that the user chose, which is in its first record, or one that is made when first needed,
which is in its last. Without either it would have been called like its folder.
"""

from __future__ import annotations

import os

from netsandbox_portmap.session_name import branch_of, default_name

from netsandbox.audit.log import END
from netsandbox.audit.reader import Record, lines_of, log_files, open_log
from netsandbox.errors import NetsandboxError
from netsandbox.paths import LOG_NAME, list_sessions, session_dir

MAX_TAIL = 4096  # bytes at the end of a log: its last record and the seal


def newest_log_of(name: str) -> str | None:
    """The log of the newest session with this name; None if there is none."""
    for session in list_sessions():
        path = log_of(session)
        if os.path.exists(path) and name_in(path) == name:
            return path
    return None


def log_of(session: str) -> str:
    return os.path.join(session_dir(session), LOG_NAME)


def name_in(path: str) -> str | None:
    """The name of the session that wrote the log at *path*; None if it cannot be read."""
    try:
        start = first_record(path)
        found = start.get("name") or _last_name(path) or _folder_name(start.get("folder"))
    except (OSError, NetsandboxError):
        return None
    return found if isinstance(found, str) else None


def first_record(path: str) -> Record:
    """The first record of a log, which describes the session; empty if there is none."""
    first = log_files(path)[0]
    with open_log(first) as stream:
        for line in lines_of(stream, first):
            return line.record or {}
    return {}


def _last_name(path: str) -> object:
    import json

    with open_log(path) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - MAX_TAIL))
        tail = stream.read(MAX_TAIL)
    for line in reversed(tail.splitlines()):
        try:
            record = json.loads(line)
        except ValueError:  # the middle of a line
            continue
        if isinstance(record, dict) and record.get("event") == END:
            return record.get("name")
    return None


def _folder_name(folder: object) -> str | None:
    return default_name(folder, branch_of(folder)) if isinstance(folder, str) else None
