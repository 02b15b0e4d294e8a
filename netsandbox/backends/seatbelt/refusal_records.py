"""What Seatbelt refused, as records: read from the system's log after the act, as far as it is told there.

Rules kept here:
1. Nothing depends on it: no verdict, no door, and not the session's life. When the log cannot be read, that is one
   record, and the command runs on behind the same profile.
2. A command can provoke millions of refusals. Each kind is one record and one count; kinds are bounded, those of the
   network apart from the others, so that no flood of files hides a connection, and apart from both those that a
   process's name makes unclear; what is past the bound is counted.
3. Reading never keeps the doors waiting: a piece at a time, a line that is too long is let go.
"""

from __future__ import annotations

from netsandbox.audit.folding import MAX_KINDS, FoldedRecords
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
OWN_TESTS = 2  # connections to a closed port, on 127.0.0.1 and ::1, by whatever then becomes the command
PATIENCE = 0.3  # seconds for the log to begin, before the command does
UNRECORDED = "what Seatbelt refuses is not recorded"


class RefusalRecords:
    """One per session. *program* prints the log; none is a system that has no such log. *tag* is in the profile."""

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
        """Until the log has begun, for a moment: what is refused before is not told."""
        if self._stream is not None:
            self._stream.wait(PATIENCE)

    def awaited(self, status: int) -> bool:
        """Whether a command that ended so is worth a moment's wait for lines that are still on their way."""
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
        detail = f"past {MAX_KINDS} kinds, not listed"
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
