"""Records the files that a session was refused: `file` and `exec` records, folded by path, their number bounded.

The session's mounts refuse; these records only tell. A process may change the path of a call after we have read it, and
so falsify the log about itself (attack 115), but it gains nothing.
"""

from __future__ import annotations

import os

from netsandbox.audit.folding import COUNT_ONLY, Folding
from netsandbox.backends.namespaces.file_calls import CHANGE, EXECUTE, FOLDER, MAKE, READ, observed_calls
from netsandbox.backends.namespaces.procfs import process_of
from netsandbox.paths import home
from netsandbox.policy import reasons
from netsandbox.policy.file_denials import hint_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.namespaces.trap_relay import FileRefusal

MAX_PATHS = 1024
OPERATIONS = {"r": READ, "w": CHANGE, "n": MAKE, "u": MAKE, "d": FOLDER, "x": EXECUTE}
REASONS = {"h": reasons.NOT_SHOWN, "r": reasons.READ_ONLY, "d": reasons.DENY_RULE}


class FileRefusals:
    """One per session."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._home = os.path.realpath(home())
        self._calls = {number: call.name for number, call in observed_calls(os.uname().machine).items()}
        self._folding = Folding(self._write, max_kinds=MAX_PATHS, when_full=COUNT_ONLY)
        self._unreported = 0

    def take(self, refusal: FileRefusal) -> None:
        """Record or count one refusal."""
        path, operation = os.path.normpath(refusal.path), OPERATIONS[refusal.does]
        try:
            pid = process_of(refusal.pid)
        except OSError:  # the caller has ended
            pid = refusal.pid
        first = {"pid": pid, "exe": refusal.exe or "?", "call": self._calls.get(refusal.call, str(refusal.call))}
        self._folding.count((path, operation, REASONS[refusal.why]), refusal.times, first=first)

    def left_out(self, count: int) -> None:
        self._unreported += count

    def close(self) -> None:
        """Write the counts, and how many refusals have no record."""
        self._folding.flush()
        missing = self._unreported + self._folding.left_out
        if missing:
            self._log.write("file", door="seccomp", count=missing, detail="more refused paths than are listed")

    def _write(self, kind: tuple[str, str, str], count: int, _size: int, **first: object) -> bool:
        path, operation, reason = kind
        return self._log.write(
            "exec" if operation == EXECUTE else "file",
            verdict="deny",
            reason=reason,
            door="seccomp",
            operation=operation,
            path=path,
            hint=None if reason == reasons.DENY_RULE else hint_for(path, operation, self._home),
            count=count,
            **first,
        )
