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
from netsandbox.policy.file_rules import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.namespaces.file_changes import FileChanges
    from netsandbox.backends.namespaces.trap_relay import FileRefusal

MAX_PATHS = 1024
OPERATIONS = {"r": READ, "w": CHANGE, "n": MAKE, "u": MAKE, "d": FOLDER, "x": EXECUTE}
DONE, HIDDEN = "o", "d"
REASONS = {"h": reasons.NOT_SHOWN, "r": reasons.READ_ONLY, HIDDEN: reasons.DENY_RULE}


class FileRefusals:
    """One per session. *secrets*: places that a session does not see though it has the rest of the host's files.
    *changes* takes what was not refused."""

    def __init__(self, log: AuditLog, secrets: Sequence[str] = (), changes: FileChanges | None = None) -> None:
        self._log = log
        self._secrets = secrets
        self._changes = changes
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
        if refusal.why == DONE:
            if self._changes is not None:
                self._changes.take(path, operation, first)
            return
        self._folding.count((path, operation, self._reason(refusal)), refusal.times, first=first)

    def _reason(self, refusal: FileRefusal) -> str:
        is_secret = refusal.why == HIDDEN and self._secret(refusal.path) is not None
        return reasons.NOT_SHOWN if is_secret else REASONS[refusal.why]

    def _secret(self, path: str) -> str | None:
        return next((place for place in self._secrets if is_within(path, place)), None)

    def left_out(self, count: int) -> None:
        self._unreported += count

    def close(self) -> None:
        """Write the counts, and how many refusals have no record."""
        self._folding.flush()
        if self._changes is not None:
            self._changes.close()
        missing = self._unreported + self._folding.left_out
        if missing:
            self._log.write("file", door="seccomp", count=missing, detail="more refused paths than are listed")

    def _write(self, kind: tuple[str, str, str], count: int, _size: int, **first: object) -> bool:
        path, operation, reason = kind
        place = self._secret(path)
        return self._log.write(
            "exec" if operation == EXECUTE else "file",
            verdict="deny",
            reason=reason,
            door="seccomp",
            operation=operation,
            path=path,
            place=place,
            hint=None if reason == reasons.DENY_RULE else hint_for(place or path, operation, self._home),
            count=count,
            **first,
        )
