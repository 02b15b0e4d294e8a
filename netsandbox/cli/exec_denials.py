"""What a session was denied while a command of `netsandbox exec` ran, as `netsandbox run` prints it at its end.

The session's log is read, since the session prints its notices elsewhere.
"""

from __future__ import annotations

import os

from netsandbox.audit.log_position import denied_since, position
from netsandbox.session.exec_client import settle
from netsandbox.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from netsandbox.session.session_status import Status


class RecordedDenials:
    """Made before the command *words* starts in the session of *status*."""

    def __init__(self, status: Status, words: Sequence[str]) -> None:
        self._session = status["session"]
        self._name = printable(status["name"])
        self._words = words
        self._begin = position(status.get("audit_log") or "")

    def lines(self, returncode: int, *, is_running: bool) -> list[str]:
        """The command has ended with *returncode*; *is_running*: the session has not."""
        if self._begin is None:
            return []
        settle(self._session)
        found = denied_since(self._begin, self._session, os.getpid())
        if not found.denied and not found.denied_files:
            return []
        from netsandbox.cli.notices import outcome_lines
        from netsandbox.session.launch import Outcome, denials_of, file_denials_of

        denied, files = denials_of(found.denied), file_denials_of(found.denied_files)
        lines = outcome_lines(Outcome(returncode, self._session, self._begin.path, denied, files), self._words)
        if is_running and any(" --" in line for line in lines):
            lines.append(f"session {self._name} keeps its rules until it ends; start it again with the options above")
        return lines
