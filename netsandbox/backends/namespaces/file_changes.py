"""Records what a command changes of the host's files, for `netsandbox learn` in the mode `open`, which refuses nothing.

The observer reports each change and lets the kernel make it (`trap_relay`). Nothing is decided here, so a process that
changes a path meanwhile only falsifies the log about itself (attack 115). Paths where every session may write are left
out.
"""

from __future__ import annotations

import os

from netsandbox.backends.linux.path_notes import PathNotes
from netsandbox.policy.file_rules import CHANGE, FOLDER, is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.audit.log import AuditLog
    from netsandbox.policy.path_folding import EntryLimits


class FileChanges:
    """One per session. *writable*: real paths where every session may write."""

    def __init__(self, log: AuditLog, writable: tuple[str, ...], limits: EntryLimits) -> None:
        self._log = log
        self._writable = writable
        self._notes = PathNotes(limits)

    def take(self, path: str, operation: str, caller: Mapping[str, object]) -> None:
        """Record one change, unless it is known."""
        real = real_path(path, follow=operation == CHANGE)
        if any(is_within(real, folder) for folder in self._writable):
            return
        if operation == CHANGE and os.path.isdir(real):
            operation = FOLDER
        note = self._notes.add(real, operation)
        if note is not None:
            self._log.write("file", door="seccomp", path=note[0], operation=note[1], **caller)

    def close(self) -> None:
        """Record how many changes were left out."""
        if self._notes.left_out:
            self._log.write("file", door="seccomp", count=self._notes.left_out, detail="more paths than are listed")


def real_path(path: str, *, follow: bool) -> str:
    """*path* with its links resolved; the last one only if it is followed. A link to nothing leads to what will be made
    there."""
    folder, name = os.path.split(path.rstrip("/") or "/")
    if follow or (os.path.islink(path) and not os.path.exists(path)):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(folder), name)
