"""Records the files that a session was refused: `file` and `exec` records, folded by path, their number bounded.

The session's mounts refuse; these records only tell. A process may change the path of a call after we have read it, and
so falsify the log about itself (attack 115), but it gains nothing.

A path that the session does not see may be one that it makes next: programs open a file and make it if it is missing.
So such a refusal waits a moment, and is dropped if the session makes the path.
"""

from __future__ import annotations

import os

from netsandbox.audit.folding import COUNT_ONLY, Folding
from netsandbox.audit.record_line import MORE_REFUSED
from netsandbox.backends.linux.procfs import process_of
from netsandbox.backends.namespaces.file_calls import observed_calls
from netsandbox.paths import home
from netsandbox.policy import reasons
from netsandbox.policy.file_denials import Advice, DenyRules, is_secret
from netsandbox.policy.file_rules import CHANGE, EXECUTE, FOLDER, MAKE, READ, READING, FileRules, is_within
from netsandbox.runtime.protection import own_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.linux.trap_relay import FileRefusal
    from netsandbox.backends.namespaces.file_changes import FileChanges

    Held = tuple[tuple[str, str, str, str | None], int, Mapping[str, object]]

MAX_PATHS = 1024
MAX_HELD = 256  # refusals that wait at once
HOLD = 1.0  # seconds that a refusal waits at least; twice that at most
OPERATIONS = {"r": READ, "w": CHANGE, "n": MAKE, "u": MAKE, "d": FOLDER, "x": EXECUTE}
DONE, MISSING = "o", "h"
# `d`: it is covered
REASONS = {MISSING: reasons.NOT_SHOWN, "r": reasons.READ_ONLY, "d": reasons.NOT_SHOWN, "x": reasons.NOT_LISTED}


class FileRefusals:
    """One per session. *rules* are those that it enforces. *secrets*: places that a session does not see though it has
    the rest of the host's files. *changes* takes what was not refused."""

    def __init__(
        self,
        log: AuditLog,
        call_later: Callable[[float, Callable[[], None]], object],
        rules: FileRules = FileRules(),  # noqa: B008 (a value)
        secrets: Sequence[str] = (),
        changes: FileChanges | None = None,
    ) -> None:
        self._log = log
        self._call_later = call_later
        self._secrets = secrets
        self._changes = changes
        self._home = os.path.realpath(home())
        self._advice = Advice(self._home, os.path.realpath, own_paths)
        self._denies = DenyRules(rules, self._home, os.path.realpath) if rules.deny_read or rules.deny_write else None
        self._calls = {number: call.name for number, call in observed_calls(os.uname().machine).items()}
        self._folding = Folding(self._write, max_kinds=MAX_PATHS, when_full=COUNT_ONLY)
        self._held: list[Held] = []
        self._held_longer: list[Held] = []
        self._is_timed = False
        self._unreported = 0

    def take(self, refusal: FileRefusal) -> None:
        """Record or count one refusal, now or in a moment."""
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
        rule = None if self._denies is None else self._denies.text_for(os.path.realpath(path), operation)
        reason = REASONS[refusal.why] if rule is None else reasons.DENY_RULE
        held = (path, operation, reason, rule), refusal.times, first
        if refusal.why != MISSING or is_secret(path, self._home):
            self._record([held])
            return
        self._held.append(held)
        if len(self._held) > MAX_HELD:  # in their order, so that a flood does not take the room of the first
            self._record_held()
        else:
            self._await_release()

    def made(self, path: str) -> None:
        """The session makes *path* or a folder above it, so it was not refused to make it. What it could not read is
        recorded all the same: a command must not take its attempt out of the log by making a file of that name."""
        path = os.path.normpath(path)
        held = [*self._held_longer, *self._held]
        self._held = [each for each in self._held if each[0][0] != path]
        self._held_longer = [each for each in self._held_longer if each[0][0] != path]
        self._record(
            ((path, kind[1], reasons.MADE_LATER, kind[3]), times, first)
            for kind, times, first in held
            if kind[0] == path and kind[1] in READING
        )

    def _await_release(self) -> None:
        if not self._is_timed:
            self._is_timed = True
            self._call_later(HOLD, self._release)

    def _release(self) -> None:
        self._is_timed = False
        due, self._held_longer, self._held = self._held_longer, self._held, []
        self._record(due)
        if self._held_longer:
            self._await_release()

    def _record_held(self) -> None:
        held, self._held, self._held_longer = [*self._held_longer, *self._held], [], []
        self._record(held)

    def _record(self, refusals: Iterable[Held]) -> None:
        for kind, times, first in refusals:
            self._folding.count(kind, times, first=first)

    def settle(self) -> None:
        """Write the counts, and what waits of processes that have ended: these make no path any more."""
        due = [each for each in (*self._held_longer, *self._held) if not os.path.exists(f"/proc/{each[2]['pid']}")]
        self._held_longer = [each for each in self._held_longer if each not in due]
        self._held = [each for each in self._held if each not in due]
        self._record(due)
        self._folding.flush()

    def _secret(self, path: str) -> str | None:
        return next((place for place in self._secrets if is_within(path, place)), None)

    def left_out(self, count: int) -> None:
        self._unreported += count

    def close(self) -> None:
        """Write what waits, the counts, and how many refusals have no record."""
        self._record_held()
        self._folding.flush()
        if self._changes is not None:
            self._changes.close()
        missing = self._unreported + self._folding.left_out
        if missing:
            self._log.write("file", door="seccomp", count=missing, detail=MORE_REFUSED)

    def _write(self, kind: tuple[str, str, str, str | None], count: int, _size: int, **first: object) -> bool:
        path, operation, reason, rule = kind
        place = self._secret(path) if rule is None else None
        return self._log.write(
            "exec" if operation == EXECUTE else "file",
            verdict="deny",
            reason=reason,
            door="seccomp",
            operation=operation,
            path=path,
            place=place,
            rule=rule,
            hint=None
            if rule is not None or reason == reasons.MADE_LATER
            else self._advice.hint(place or path, operation, reason),
            count=count,
            **first,
        )
