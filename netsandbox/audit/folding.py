"""Records that come again and again: the first of a kind is written at once, its repeats are counted and written at the
end.

A program may ask for the same socket ten thousand times a second; the log hears of it twice. Kinds are bounded: past
MAX_KINDS each wish is a record of its own; or, where nothing waits for the record, is only counted.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.audit.log import AuditLog

MAX_KINDS = 1024


class FoldedRecords:
    """What makes a kind are the fields of its record; the process that wished it is named in the first one only."""

    __slots__ = ("_bounded", "_counts", "_log", "left_out")

    def __init__(self, log: AuditLog, *, bounded: bool = False) -> None:
        self._log = log
        self._bounded = bounded
        self._counts: dict[tuple[str, tuple[tuple[str, object], ...]], int] = {}
        self.left_out = 0  # wishes of kinds past the bound that are in no record

    def note(self, pid: int | None, times: int = 1, /, *, event: str = "socket", **fields: object) -> bool:
        """Record or count a wish. False: it is not in the log, so it must not be granted (INV-5)."""
        kind = event, tuple(fields.items())
        if kind in self._counts:
            self._counts[kind] += times
            return self._log.failed is None
        if len(self._counts) < MAX_KINDS:
            self._counts[kind] = 0
        elif self._bounded:
            self.left_out += times
            return False
        return self._log.write(event, pid=pid, **fields, count=times)

    def flush(self) -> None:
        """Write what was counted."""
        for (event, fields), count in self._counts.items():
            if count:
                self._log.write(event, **dict(fields), count=count)
        self._counts.clear()
