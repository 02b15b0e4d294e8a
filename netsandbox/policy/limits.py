"""Limits of a session's resources as users write them: `memory=2G,processes=500,cpu=200%`. Pure."""

from __future__ import annotations

from netsandbox.errors import UsageError
from netsandbox.text import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Limits = tuple[tuple[str, int], ...]

SIZE, COUNT, PERCENT = "size", "count", "percent"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# Each limit: how it is written, its least and its largest value. A program needs some memory to start at all.
KINDS = {
    "memory": (SIZE, 4 << 20, 1 << 50),
    "processes": (COUNT, 1, 1 << 22),
    "files": (COUNT, 8, 1 << 30),
    "cpu": (PERCENT, 1, 100_000),
    "file-size": (SIZE, 1, 1 << 60),
    "core": (SIZE, 0, 1 << 60),
    "address-space": (SIZE, 4 << 20, 1 << 60),
}
OWN_PROCESSES = 2  # of ours, which count too: the session's PID 1 and its spawner
EXAMPLES = {SIZE: "2G or 512M", COUNT: "500", PERCENT: "200%"}


def parse_limits(texts: Iterable[tuple[str, str]]) -> Limits:
    """The limits in *texts*, each with its origin: comma-separated, the last value of a name counts."""
    found: dict[str, int] = {}
    for text, origin in texts:
        for part in text.split(","):
            name, value = _limit(part.strip(), origin)
            found[name] = value
    return tuple(found.items())


def _limit(text: str, origin: str) -> tuple[str, int]:
    name, sign, written = text.partition("=")
    if name not in KINDS:
        raise UsageError(f"{origin}: {quoted(name)} is not a limit; write one of {', '.join(KINDS)}, such as memory=2G")
    kind, least, most = KINDS[name]
    value = _value(kind, written) if sign else None
    if value is None or not least <= value <= most:
        bounds = f"from {shown_value(name, least)} to {shown_value(name, most)}"
        raise UsageError(f"{origin}: {quoted(text)} is not a limit {bounds}; write {name}={EXAMPLES[kind]}")
    return name, value


def _value(kind: str, text: str) -> int | None:
    unit = 1
    if kind == PERCENT:
        if not text.endswith("%"):
            return None
        text = text[:-1]
    elif kind == SIZE and text[-1:] in UNITS:
        unit, text = UNITS[text[-1]], text[:-1]
    return int(text) * unit if text.isascii() and text.isdigit() and len(text) < 20 else None


def shown_value(name: str, value: int) -> str:
    """*value* as it is written."""
    kind = KINDS[name][0]
    if kind == PERCENT:
        return f"{value}%"
    if kind == SIZE:
        for letter, unit in reversed(UNITS.items()):
            if value and value % unit == 0:
                return f"{value // unit}{letter}"
    return str(value)
