"""Denials as they happen, one line each: on standard error, in a file, or both (`--debug`, `--debug-log`).

Rules kept here:
1. Nobody waits: a line that standard error does not take at once is left out and counted, since a door waits with us.
2. Each kind of denial is said the first time, the tenth, the hundredth, and so on; kinds are bounded.
3. Nothing is raised: whatever fails here, the denial stands and the session goes on.
"""

from __future__ import annotations

import os
import time

from netsandbox.audit.denial_text import denial_text
from netsandbox.audit.log_file import DEBUG, open_file, refusal
from netsandbox.runtime.stdio import write_notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_KINDS = 1024
HEADING = b"# netsandbox: denials"
FULL = "further kinds of denials are not said here; see `netsandbox audit tail --follow --denied`"


class DenialStream:
    """An observer of `AuditLog`. *stderr* and *file* are descriptors; the file's is closed with the stream."""

    def __init__(self, stderr: int | None, file: int | None, session: str) -> None:
        self._stderr = stderr
        self._file = file
        self._times: dict[str, int] = {}
        self._left_out = 0
        self._full = False
        if file is not None:
            self._append(f"{HEADING.decode()} of the session {session}")

    def __call__(self, event: str, fields: Mapping[str, object]) -> None:
        try:
            self._hear(denial_text(event, fields), fields.get("count"))
        except Exception:  # a denial stands, whatever becomes of a line about it
            self._left_out += 1

    def close(self) -> None:
        """Say what could not be said."""
        if self._left_out:
            self._say(f"{self._left_out} lines about denials were left out; `netsandbox audit summary` has them all")
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _hear(self, text: str, count: object) -> None:
        if text not in self._times and len(self._times) >= MAX_KINDS:
            if not self._full:
                self._full = True
                self._say(FULL)
            return
        before = self._times.get(text, 0)
        now = self._times[text] = before + (count if type(count) is int and count > 0 else 1)
        if before == 0:
            self._say(text)
        elif len(str(now)) > len(str(before)):  # ten times as often
            self._say(f"{text} ({now} times)")

    def _say(self, text: str) -> None:
        if self._stderr is not None and not write_notice(self._stderr, text):
            self._left_out += 1
        if self._file is not None:
            self._append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}")

    def _append(self, text: str) -> None:
        try:
            os.write(self._file if self._file is not None else -1, f"{text}\n".encode("ascii", "backslashreplace"))
        except OSError:  # a full disk: the audit log says so where it matters
            self._left_out += 1


def open_debug_log(path: str) -> int:
    """A descriptor for appending; only a new file, or one that such a session began."""
    fd = open_file(path, DEBUG)
    try:
        begun = os.pread(fd, len(HEADING), 0)
    except OSError as error:
        os.close(fd)
        raise refusal(path, f"cannot be read ({error.strerror}); give another place with --debug-log", DEBUG) from None
    if begun not in (b"", HEADING):
        os.close(fd)
        raise refusal(path, "exists and is no debug log; give a path that does not exist yet", DEBUG)
    return fd
