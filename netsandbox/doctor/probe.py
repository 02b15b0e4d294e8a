"""One probe: the attempt inside, the required result, and how it is judged outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from netsandbox.doctor import judgement
from netsandbox.doctor.judgement import Answer, Judgement
from netsandbox.doctor.servers import Canary
from netsandbox.frozen import frozen

SILENCE = "nothing arrives"
DENIED = "denied and logged"
REFUSED = "refused"
REACHED = "reached"
UNCHANGED = "unchanged"


@frozen
class Evidence:
    """The evidence after the run: the probe's result, the session's records and its log."""

    answer: Answer | None
    records: Sequence[dict[str, Any]] = ()
    log: str | None = None


@frozen
class Probe:
    name: str
    expected: str
    attempt: str
    arguments: dict[str, Any]
    judge: Callable[[Evidence], Judgement]


@frozen
class Absent:
    """A probe that cannot be tried on this machine."""

    name: str
    expected: str
    why: str


def canary_probe(name: str, attempt: str, canary: Canary, **arguments: Any) -> Probe:
    return Probe(name, SILENCE, attempt, arguments, lambda seen: judgement.silence(seen.answer, canary.received()))


def refused(name: str, attempt: str, *, expected: str = REFUSED, **arguments: Any) -> Probe:
    return Probe(name, expected, attempt, arguments, lambda seen: judgement.refusal(seen.answer))


def logged(name: str, host: str, port: int) -> Probe:
    return Probe(
        name,
        DENIED,
        "tcp",
        {"host": host, "port": port},
        lambda seen: judgement.denial(seen.answer, seen.records, host),
    )
