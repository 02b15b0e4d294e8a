"""Records about calls on sockets: the first of a kind is written at once, its repeats are counted and written at the
end.

A program may ask for the same socket ten thousand times a second; the log hears of it twice. Kinds are bounded: past
MAX_KINDS each wish is a record of its own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.audit.log import AuditLog

MAX_KINDS = 1024


class Repeats:
    """What makes a kind are the fields of its record; the process that wished it is named in the first one only."""

    __slots__ = ("_counts", "_log")

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._counts: dict[tuple[str, tuple[tuple[str, object], ...]], int] = {}

    def note(self, pid: int | None, *, event: str = "socket", **fields: object) -> bool:
        """Record or count one wish. False: it is not in the log, so it must not be granted (INV-5)."""
        kind = event, tuple(fields.items())
        if kind in self._counts:
            self._counts[kind] += 1
            return self._log.failed is None
        if len(self._counts) < MAX_KINDS:
            self._counts[kind] = 0
        return self._log.write(event, pid=pid, **fields, count=1)

    def flush(self) -> None:
        """Write what was counted."""
        for (event, fields), count in self._counts.items():
            if count:
                self._log.write(event, **dict(fields), count=count)
        self._counts.clear()
