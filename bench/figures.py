"""The results of a measurement (pure): samples by round, their spread, ratios of the same round, and targets.

Rule: a ratio is computed only from samples of one round, because other load in that round slowed both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Spread:
    """The median of some samples, and the range of the middle eight tenths."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, samples: list[float]) -> Spread:
        ranked = sorted(samples)
        last = len(ranked) - 1
        return cls(median(ranked), ranked[round(last * 0.1)], ranked[round(last * 0.9)], len(ranked))


@dataclass
class Series:
    """Samples by contestant. A contestant that failed in a round has None there, so that rounds stay in step."""

    samples: dict[str, list[float | None]] = field(default_factory=dict)

    def add(self, name: str, sample: float | None) -> None:
        self.samples.setdefault(name, []).append(sample)

    def spread(self, name: str) -> Spread | None:
        found = [sample for sample in self.samples.get(name, ()) if sample is not None]
        return Spread.of(found) if found else None

    def ratio(self, name: str, other: str) -> Spread | None:
        pairs = zip(self.samples.get(name, ()), self.samples.get(other, ()), strict=False)
        found = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
        return Spread.of(found) if found else None


@dataclass(frozen=True)
class Target:
    """A target; `actual` is None if there was nothing to compare with."""

    text: str
    limit: float
    actual: float | None
    unit: str = "x"
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        if self.actual is None:
            return None
        return self.actual >= self.limit if self.at_least else self.actual <= self.limit


@dataclass(frozen=True)
class Row:
    """One contestant's line: its own figures, and how it compares with `against`."""

    name: str
    value: Spread
    unit: str
    ratio: Spread | None = None
    against: str = ""


@dataclass
class Result:
    """One measurement."""

    title: str
    rows: list[Row] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self, series: Series, unit: str, against: str = "") -> None:
        """A row for every contestant of *series*, each compared with *against*."""
        for name in series.samples:
            self.compare(series, name, unit, against)

    def compare(self, series: Series, name: str, unit: str, against: str = "", called: str = "") -> None:
        """A row for one contestant, its peer *called* so where its name is long; a note when it has no figures."""
        value = series.spread(name)
        if value is None:
            self.notes.append(f"{name}: no figures")
            return
        ratio = series.ratio(name, against) if against and name != against else None
        self.rows.append(Row(name, value, unit, ratio, (called or against) if ratio else ""))

    def aim(
        self, text: str, limit: float, found: Spread | float | None, unit: str = "x", *, at_least: bool = False
    ) -> None:
        actual = found.median if isinstance(found, Spread) else found
        self.targets.append(Target(text, limit, actual, unit, at_least))
