"""Folding of repeats: the first event of a kind gets its record at once, its repeats are counted and recorded later.

A program may request the same socket or name ten thousand times a second; the log then gets two records. Rules:

1. The record of a kind is written before `count` returns for the first event of that kind (INV-5).
2. Every event is counted in exactly one record. A count that could not be written is kept for the next attempt.
3. While the log cannot be written nothing is folded: each event needs its own record, or fails (INV-1).
4. The number of open kinds is bounded; *when_full* says what happens to further ones.

A program can also be denied a new name each time. `DenialFlood` folds these: beyond a rate, denials of one event and
reason are only counted, so that a flood neither fills the disk nor pushes other records out of the log.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from netsandbox.audit.log import AuditLog

    Kind = tuple[Any, ...]
    WriteRecord = Callable[..., object]  # (kind, count, size, **fields of the first record only)

MAX_KINDS = 1024
MAX_LISTED = 512  # kinds of `FoldedRecords`: fewer than MAX_DENIALS, which would fold them again
MAX_DENIALS = 1000  # of one event, reason and operation that get a record each, however fast they come
DENIALS_A_SECOND = 20  # of one event, reason and operation that get a record each, once there were so many
FOLD = "audit.fold"
WINDOW = 1.0  # seconds
CLOSE_KINDS = "close"  # write all counts, and begin anew
WRITE_EACH = "write"  # each further event gets its own record
COUNT_ONLY = "count"  # further events are counted in `left_out` and get no record


class Repeats:
    """An open kind, and the repeats of it that are in no record yet."""

    __slots__ = ("count", "is_open", "kind", "size")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.count = 0
        self.size = 0  # the sum of the sizes of what was counted, for events that have one
        self.is_open = True


class Folding:
    """Counts the events of each kind. *write* gets a kind, a count and a size, and returns whether it wrote a record.

    With *call_later* (of the loop) counts are written once per `WINDOW`, and a kind that did not come again is closed;
    without it the owner calls `flush`. *on_close* is called after kinds were closed or a write failed.
    """

    def __init__(
        self,
        write: WriteRecord,
        *,
        max_kinds: int = MAX_KINDS,
        when_full: str = CLOSE_KINDS,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        on_close: Callable[[], object] | None = None,
    ) -> None:
        self._write = write
        self._max_kinds = max_kinds
        self._when_full = when_full
        self._call_later = call_later
        self._on_close = on_close or _nothing
        self._open: dict[Kind, Repeats] = {}
        self._is_timed = False
        self.is_broken = False  # the last write failed, and nothing was flushed since
        self.left_out = 0  # events of further kinds that are in no record (COUNT_ONLY)

    def count(
        self, kind: Kind, times: int = 1, size: int = 0, first: Mapping[str, object] | None = None
    ) -> Repeats | None:
        """Count an event. None: it is not in the log, so it must not be answered or granted.

        *first* are fields of the record that is written at once; records of repeats lack them.
        """
        repeats = self._open.get(kind)
        if repeats is not None and not self.is_broken:
            repeats.count += times
            repeats.size += size
            return repeats
        if repeats is not None:
            if not self._written(kind, repeats.count + times, repeats.size + size):
                return None
            repeats.count = repeats.size = 0
            return repeats
        is_full = len(self._open) >= self._max_kinds
        if is_full and self._when_full == COUNT_ONLY:
            self.left_out += times
            return None
        if not self._written(kind, times, size, first):
            return None
        repeats = Repeats(kind)
        if is_full and (self._when_full == WRITE_EACH or not self._make_room()):
            repeats.is_open = False
            return repeats if self._when_full == WRITE_EACH else None
        self._open[kind] = repeats
        if self._call_later is not None and not self._is_timed:
            self._is_timed = True
            self._call_later(WINDOW, self._end_window)
        return repeats

    def flush(self) -> None:
        """Write what was counted; a kind that did not come again is closed."""
        self.is_broken = False
        for kind, repeats in list(self._open.items()):
            if not repeats.count:
                repeats.is_open = False
                del self._open[kind]
            elif self._written(kind, repeats.count, repeats.size):
                repeats.count = repeats.size = 0
        self._on_close()

    def fail(self) -> None:
        """The records of events that were counted did not reach the log: from now on each event needs its own."""
        self.is_broken = True
        self._on_close()

    def _make_room(self) -> bool:
        """Close every kind. Counts that cannot be written keep their place: further kinds are refused instead."""
        self.flush()
        if self.is_broken:
            return len(self._open) < self._max_kinds
        for repeats in self._open.values():
            repeats.is_open = False
        self._open.clear()
        self._on_close()
        return True

    def _written(self, kind: Kind, count: int, size: int, first: Mapping[str, object] | None = None) -> bool:
        try:
            written = bool(self._write(kind, count, size, **first) if first else self._write(kind, count, size))
        except Exception:  # an exception counts as a failed write
            written = False
        if not written and not self.is_broken:
            self.fail()
        return written

    def _end_window(self) -> None:
        self._is_timed = False
        self.flush()
        if self._open and self._call_later is not None:
            self._is_timed = True
            self._call_later(WINDOW, self._end_window)


class FoldedRecords(Folding):
    """Folds records of one log whose fields are equal; the process id is in the first record of a kind only.

    Further kinds are written each time. *bounded*, where nothing waits for the record: they are only counted.
    """

    def __init__(self, log: AuditLog, *, bounded: bool = False) -> None:
        super().__init__(self._write_record, max_kinds=MAX_LISTED, when_full=COUNT_ONLY if bounded else WRITE_EACH)
        self._log = log

    def note(self, pid: int | None, times: int = 1, /, *, event: str = "socket", **fields: object) -> bool:
        """Record or count an event. False: it is not in the log, so it must not be granted (INV-5)."""
        counted = self.count((event, tuple(fields.items())), times, first={"pid": pid})
        return counted is not None and self._log.failed is None

    def _write_record(self, kind: Kind, count: int, _size: int, pid: int | None = None) -> bool:
        event, fields = kind
        return self._log.write(event, pid=pid, **dict(fields), count=count)


class DenialFlood:
    """Decides which denials get a record each. The others are counted, and the last of each kind is kept whole."""

    def __init__(self, now: float) -> None:
        # Events, reasons and operations are few. A flood of one operation hides no other.
        self._room: dict[tuple[str, object, object], int] = {}
        self._folded: dict[tuple[str, object, object], tuple[int, Mapping[str, object]]] = {}
        self._now = now

    def admits(self, event: str, fields: Mapping[str, object], times: int) -> bool:
        """Whether this denial gets a record. If not, it is counted in the next `summaries`."""
        kind = event, fields.get("reason"), fields.get("operation")
        room = self._room.get(kind, MAX_DENIALS)
        if room > 0:
            self._room[kind] = room - 1
            return True
        before = self._folded.get(kind)
        self._folded[kind] = (times if before is None else before[0] + times), fields
        return False

    def is_due(self, now: float) -> bool:
        return now >= self._now + WINDOW

    def summaries(self, now: float) -> list[tuple[str, Mapping[str, object]]]:
        """The records of what was counted: for each kind the last denial, and how many others there were."""
        gained = int((now - self._now) * DENIALS_A_SECOND)
        self._now = now
        self._room = {kind: min(MAX_DENIALS, room + gained) for kind, room in self._room.items()}
        folded, self._folded = self._folded, {}
        records: list[tuple[str, Mapping[str, object]]] = []
        for (event, reason, _), (count, last) in folded.items():
            times = last.get("count")
            others = count - (times if type(times) is int else 1)
            if others:
                records.append((FOLD, {"verdict": "deny", "reason": reason, "of": event, "count": others}))
            records.append((event, last))
        return records


def _nothing() -> None:
    pass
