"""Records what Seatbelt refused, as far as the system's log reports it afterwards.

Rules kept here:
1. Nothing depends on it: no verdict, no door, not the session's life. If the log cannot be read, there is one record of
   that, and the command continues behind the same profile.
2. A command can cause millions of refusals. Each kind is one record with a count. Kinds are bounded separately for the
   network, for other operations, and for messages that a process's name makes ambiguous, so that many refused files
   hide no connection. Refusals over the bound are counted.
3. Reading never blocks the doors: it takes one piece at a time and drops a line that is too long.
"""

from __future__ import annotations

from netsandbox.audit.folding import MAX_LISTED, FoldedRecords
from netsandbox.backends.seatbelt.log_stream import LogStream
from netsandbox.backends.seatbelt.profile.violations import UNCLEAR, Reader, command
from netsandbox.policy import reasons
from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.audit.log import AuditLog
    from netsandbox.backends.seatbelt.profile.violations import Violation
    from netsandbox.runtime.loop import Loop

NETWORK = "network"
OWN_TESTS = 2  # connections to a closed port, on 127.0.0.1 and ::1, by the process that becomes the command
PATIENCE = 0.3  # seconds to wait for the log before the command starts
UNRECORDED = "what Seatbelt refuses is not recorded"


class RefusalRecords:
    """One per session. *program* prints the log; empty on a system without such a log. *tag* is in the profile."""

    def __init__(self, loop: Loop, log: AuditLog, program: str, tag: str, *, closed_port: int) -> None:
        self._loop = loop
        self._log = log
        self._closed_port = closed_port
        self._reader = Reader(tag)
        self._network = FoldedRecords(log, bounded=True)
        self._unclear = FoldedRecords(log, bounded=True)
        self._others = FoldedRecords(log, bounded=True)
        self._own_tests = OWN_TESTS
        self._any = False
        self._stream: LogStream | None = None
        if program:
            self._begin(command(tag, program))

    def _begin(self, words: list[str]) -> None:
        try:
            self._stream = LogStream(words)
        except OSError as error:
            self._log.write("policy", detail=f"the system's log cannot be read ({error.strerror}); {UNRECORDED}")
            return
        self._loop.watch(self._stream.fileno(), IN, self._on_output)

    def wait(self) -> None:
        """Wait briefly until the log stream has begun: earlier refusals are not reported."""
        if self._stream is not None:
            self._stream.wait(PATIENCE)

    def awaited(self, status: int) -> bool:
        """Whether to wait a moment for late lines after a command that ended with *status*."""
        return self._stream is not None and (self._any or status != 0)

    def close(self) -> None:
        self._end()
        for repeats in (self._network, self._unclear, self._others):
            repeats.flush()
            if repeats.left_out:
                self._record_rest(repeats.left_out)
                repeats.left_out = 0
        if self._reader.dropped:
            self._log.write("policy", detail=f"{self._reader.dropped} lines of the system's log could not be read")
            self._reader.dropped = 0

    def _record_rest(self, count: int) -> None:
        detail = f"past {MAX_LISTED} kinds, not listed"
        self._log.write("seatbelt", verdict="deny", reason=reasons.SEATBELT, count=count, detail=detail)

    def _on_output(self, events: int) -> None:
        assert self._stream is not None
        data = self._stream.read()
        if data is None:
            return
        if not data:
            self._end()
            self._log.write("policy", detail=f"the system's log ended; from here on {UNRECORDED}")
            return
        for violation in self._reader.feed(data):
            self._note(violation)

    def _note(self, violation: Violation) -> None:
        fields = violation.fields()
        if fields.get("port") == self._closed_port and self._own_tests > 0:
            self._own_tests -= violation.count
            return
        self._any = True
        pid, times = fields.pop("pid", None), fields.pop("count", 1)
        assert pid is None or isinstance(pid, int)
        assert isinstance(times, int)
        fields["reason"] = reasons.SEATBELT
        self._repeats_of(violation.operation).note(pid, times, event="seatbelt", **fields)

    def _repeats_of(self, operation: str) -> FoldedRecords:
        if operation == UNCLEAR:
            return self._unclear
        return self._network if operation.startswith(NETWORK) else self._others

    def _end(self) -> None:
        if self._stream is not None:
            self._loop.unwatch(self._stream.fileno())
            self._stream.close()
            self._stream = None
