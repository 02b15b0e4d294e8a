"""Remembers where `--audit-log` put the log of the newest such session, so that `netsandbox audit` can name the path.

    <state home>/placed-log    the session's id, a space, the path

Errors are ignored, since this is only a help for people. No session sees the file (INV-8).
"""

from __future__ import annotations

import os

from netsandbox.errors import NetsandboxError
from netsandbox.paths import is_session_id, state_home
from netsandbox.runtime.private_file import content, replace

PLACED = "placed-log"
_MAX_SIZE = 8192


def note(session: str, path: str) -> None:
    try:
        replace(os.path.join(state_home(), PLACED), os.fsencode(f"{session} {path}"))
    except (OSError, NetsandboxError):
        pass


def newest() -> tuple[str, str] | None:
    """The session and its log."""
    try:
        text = os.fsdecode(content(os.path.join(state_home(), PLACED), _MAX_SIZE))
    except (OSError, NetsandboxError):
        return None
    session, _, path = text.partition(" ")
    return (session, path) if is_session_id(session) and path.startswith("/") else None


def log_in(folder: str) -> str | None:
    """The newest log in a folder of placed ones; None where there is none."""
    names = [name for name in os.listdir(folder) if name.endswith(".jsonl") and is_session_id(name[: -len(".jsonl")])]
    return os.path.join(folder, max(names)) if names else None
