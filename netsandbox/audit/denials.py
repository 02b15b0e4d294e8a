"""Denials as they happen, one line each: on standard error, in a file, or both (`--debug`, `--debug-log`).

Rules kept here:
1. Nothing blocks: a line that standard error does not take at once is dropped and counted, since a door waits for us.
2. Each kind of denial is written the first time, the tenth, the hundredth, and so on; the number of kinds is bounded.
   Files that programs try, such as logins for registries, are in the file only: whether the command needed one is known
   at its end, and is reported there.
3. Nothing is raised: after any failure here, the denial stands and the session continues.
4. All text is escaped, since the command chose parts of it.
"""

from __future__ import annotations

import os
import time

from netsandbox.audit.log_file import DEBUG, open_file, refusal
from netsandbox.audit.record_line import FILE_EVENTS
from netsandbox.paths import home
from netsandbox.runtime.inherited import write_notice
from netsandbox.text import printable, printable_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_KINDS = 1024
MAX_LINE = 400
_DOING = {"read": "reading", "execute": "executing"}
_VERBS = {"dns": "looking up ", "udp": "UDP to ", "bind": "binding ", "listen": "listening at ", "publish": "showing "}
_UNREACHED = ("lookup-failed", "unreachable")
HEADING = b"# netsandbox: denials"
FULL = "further kinds of denials are not listed here; see `netsandbox audit tail --follow --denied`"


class DenialStream:
    """An observer of `AuditLog`. *stderr* and *file* are descriptors; the file's is closed with the stream."""

    def __init__(self, stderr: int | None, file: int | None, session: str) -> None:
        self._stderr = stderr
        self._file = file
        self._times: dict[str, int] = {}
        self._left_out = 0
        self._full = False
        self._home: str | None = None
        if file is not None:
            self._append(f"{HEADING.decode()} of the session {session}")

    def __call__(self, event: str, fields: Mapping[str, object]) -> None:
        try:
            self._count(denial_text(event, fields), fields.get("count"), is_tried=self._is_tried(event, fields))
        except Exception:  # the denial stands, with or without a line about it
            self._left_out += 1

    def close(self) -> None:
        """Write how many lines were left out, and close the file."""
        if self._left_out:
            self._write(f"{self._left_out} lines about denials were left out; `netsandbox audit summary` has them all")
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _is_tried(self, event: str, fields: Mapping[str, object]) -> bool:
        if event not in FILE_EVENTS:
            return False
        from netsandbox.policy.habits import is_habit  # the log has loaded it

        if self._home is None:
            self._home = os.path.realpath(home())
        return is_habit({**fields, "event": event}, self._home, succeeded=True)

    def _count(self, text: str, count: object, *, is_tried: bool) -> None:
        if text not in self._times and len(self._times) >= MAX_KINDS:
            if not self._full:
                self._full = True
                self._write(FULL)
            return
        before = self._times.get(text, 0)
        now = self._times[text] = before + (count if type(count) is int and count > 0 else 1)
        if before == 0:
            self._write(text, to_file_only=is_tried)
        elif len(str(now)) > len(str(before)):  # ten times as often
            self._write(f"{text} ({now} times)", to_file_only=is_tried)

    def _write(self, text: str, *, to_file_only: bool = False) -> None:
        if self._stderr is not None and not to_file_only and not write_notice(self._stderr, text):
            self._left_out += 1
        if self._file is not None:
            self._append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}")

    def _append(self, text: str) -> None:
        try:
            os.write(self._file if self._file is not None else -1, f"{text}\n".encode("ascii", "backslashreplace"))
        except OSError:  # a full disk: the audit log reports it
            self._left_out += 1


def open_debug_log(path: str) -> int:
    """A descriptor for appending to *path*, which must be new or a debug log."""
    fd = open_file(path, DEBUG)
    try:
        begun = os.pread(fd, len(HEADING), 0)
    except OSError as error:
        os.close(fd)
        raise refusal(path, f"cannot be read ({error.strerror}); give another place with --debug-log", DEBUG) from None
    if begun not in (b"", HEADING):
        os.close(fd)
        raise refusal(path, "exists and is not a debug log; give a path that does not exist yet", DEBUG)
    return fd


def denial_text(event: str, fields: Mapping[str, object]) -> str:
    """One line: what was denied, why, to which program, and the option that would allow it."""
    exe = fields.get("exe")
    by = f" to {printable(exe).rpartition('/')[2]}" if exe else ""
    reason = printable(fields.get("reason", "?"))
    text = f"denied {wanted(event, fields)} ({reason}){by}; {_advice(fields)}"
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}..."


def wanted(event: str, fields: Mapping[str, object]) -> str:
    """The target of the denied attempt, in a few words."""
    host, port = fields.get("host") or fields.get("address"), fields.get("port")
    if event == "seatbelt":
        on = fields.get("path") or fields.get("target") or host or (f"port {port}" if port else "")
        return printable(f"{fields.get('operation') or fields.get('detail') or 'something'} {on}".rstrip())
    if event == "http":
        from netsandbox.audit.requests import request_text  # sessions that inspect have loaded it

        return request_text(fields)
    if event in FILE_EVENTS:
        return printable(f"{doing(fields.get('operation'))} {fields.get('path', '?')}")
    if event == "socket" and fields.get("path"):
        return printable(f"the socket {fields['path']}")
    if event == "socket":
        return printable(f"a socket of the kind {fields.get('family', '?')}/{fields.get('type', '?')}")
    if host is None and port is None:
        return printable(fields.get("detail") or event)
    return _VERBS.get(event, "") + printable_place(host, port)


def doing(operation: object) -> str:
    """The verb for what a command wanted with a file."""
    return _DOING.get(str(operation), "writing")


def _advice(fields: Mapping[str, object]) -> str:
    if fields.get("hint"):
        return f"allow it with {printable(fields['hint'])}"
    if fields.get("reason") in _UNREACHED:
        return "it is allowed but was not reached; check the name and the host's own network"
    return "`netsandbox explain --last` says more"
