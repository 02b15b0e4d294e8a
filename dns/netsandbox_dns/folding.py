"""Folds identical records: the first of a kind is written at once, its repeats once a second with their count.

Rules kept here:

1. A kind (host, type, verdict, reason, rule) is written before the first answer of that kind leaves (INV-5).
2. Every question is counted in exactly one record; a count that could not be written is owed, not lost.
3. While the log cannot be written nothing is folded: each question has to be written itself, or fails (INV-1).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox_dns.contract import Note

    Kind = tuple[str, int, bool, str, str | None]


class Tally:
    """An open kind and how often it came again since it was last written."""

    __slots__ = ("count", "kind")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.count = 0


class FoldedQueries:
    """*later* is the loop's timer; without one the owner calls `flush`. *lapsed* hears when kinds were closed."""

    def __init__(
        self,
        note: Note,
        lapsed: Callable[[], object],
        later: Callable[[float, Callable[[], None]], object] | None = None,
        *,
        window: float = 1.0,
        capacity: int = 4096,
    ) -> None:
        self._note = note
        self._lapsed = lapsed
        self._later = later
        self._window = window
        self._capacity = capacity
        self._open: dict[Kind, Tally] = {}
        self._armed = False
        self.broken = False  # the last write failed, and nothing has been flushed since

    def record(self, kind: Kind) -> Tally | None:
        """Count one question of *kind*; None: it could not be written, so it must not be answered."""
        tally = self._open.get(kind)
        if tally is not None and not self.broken:
            tally.count += 1
            return tally
        if not self._written(kind, 1 + (tally.count if tally is not None else 0)):
            return None
        if tally is not None:
            tally.count = 0
            return tally
        if len(self._open) >= self._capacity and not self._make_room():
            return None
        tally = self._open[kind] = Tally(kind)
        self._arm()
        return tally

    def is_open(self, tally: Tally) -> bool:
        return self._open.get(tally.kind) is tally

    def flush(self) -> None:
        """Write what was counted; a kind that did not come again is closed."""
        self.broken = False
        for tally in list(self._open.values()):
            if not tally.count:
                del self._open[tally.kind]
            elif self._written(tally.kind, tally.count):
                tally.count = 0
        self._lapsed()

    def _make_room(self) -> bool:
        """Close every kind. Owed counts keep their place: a full book refuses rather than forgets."""
        self.flush()
        if self.broken:
            return len(self._open) < self._capacity
        self._open.clear()
        self._lapsed()
        return True

    def _written(self, kind: Kind, count: int) -> bool:
        host, qtype, allowed, reason, rule = kind
        try:
            written = bool(self._note(host, qtype, allowed=allowed, reason=reason, rule=rule, count=count))
        except Exception:  # a log that raises is a log that does not write
            written = False
        if not written and not self.broken:
            self.broken = True
            self._lapsed()
        return written

    def _arm(self) -> None:
        if self._later is not None and not self._armed:
            self._armed = True
            self._later(self._window, self._due)

    def _due(self) -> None:
        self._armed = False
        self.flush()
        if self._open:
            self._arm()
