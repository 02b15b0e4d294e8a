"""One probe: what is tried inside, what must come of it, and how that is judged outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from netsandbox.doctor import judgement
from netsandbox.doctor.canary import Canary
from netsandbox.doctor.judgement import Answer, Judgement

SILENCE = "nothing arrives"
DENIED = "denied and logged"
REFUSED = "refused"
REACHED = "reached"
UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known after the run: the probe's own answer, the session's records and its log."""

    answer: Answer | None
    records: list[dict[str, Any]] = field(default_factory=list)
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    expected: str
    verb: str
    arguments: dict[str, Any]
    judge: Callable[[Evidence], Judgement]


@dataclass(frozen=True, slots=True)
class Absent:
    """A probe that this machine gives no ground for."""

    name: str
    expected: str
    why: str


def heard(name: str, verb: str, canary: Canary, **arguments: Any) -> Probe:
    return Probe(name, SILENCE, verb, arguments, lambda seen: judgement.silence(seen.answer, canary.heard()))


def refused(name: str, verb: str, *, expected: str = REFUSED, **arguments: Any) -> Probe:
    return Probe(name, expected, verb, arguments, lambda seen: judgement.refusal(seen.answer))


def logged(name: str, host: str, port: int) -> Probe:
    return Probe(
        name,
        DENIED,
        "tcp",
        {"host": host, "port": port},
        lambda seen: judgement.denial(seen.answer, seen.records, host),
    )
