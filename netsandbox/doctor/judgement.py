"""Judges a probe (pure). The verdict depends on what arrived outside; what the client saw only explains it.

A probe without a result fails: the silence of a canary proves something only after a real attempt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from netsandbox.frozen import frozen

OK = "ok"
LEAK = "LEAK"
FAILED = "FAILED"
SKIPPED = "skipped"
NOTE = "note"  # does not hold by the design of the backend; what happened says what is weaker
HOLDING = (OK, SKIPPED, NOTE)


@frozen
class Answer:
    """The report of the probe program about one probe."""

    succeeded: bool
    detail: str


@frozen
class Judgement:
    status: str
    happened: str


UNANSWERED = Judgement(FAILED, "the probe gave no answer")


def silence(answer: Answer | None, received: int | None) -> Judgement:
    """Nothing may arrive, whatever the client saw. A missing canary (None) proves nothing."""
    if received is None:
        return Judgement(FAILED, "the canary was not there in time")
    if received:
        return Judgement(LEAK, f"the canary received {received}")
    return UNANSWERED if answer is None else Judgement(OK, f"nothing arrived; client: {answer.detail}")


def own_server(answer: Answer | None, reached: int | None) -> Judgement:
    """A server inside must be reached by its own programs, and by nobody outside."""
    if answer is not None and not answer.succeeded and not reached:
        return Judgement(FAILED, f"programs of one session cannot talk; client: {answer.detail}")
    return silence(answer, reached)


def spared(answer: Answer | None, *, ended: bool) -> Judgement:
    """A process outside must not be signalled. It may take a while to end, so a successful signal already counts."""
    return Judgement(LEAK, "the process was ended") if ended else refusal(answer)


def refusal(answer: Answer | None) -> Judgement:
    """For what leaves no trace outside: the attempt itself must fail."""
    if answer is None:
        return UNANSWERED
    return Judgement(LEAK if answer.succeeded else OK, answer.detail)


def arrival(answer: Answer | None, received: int) -> Judgement:
    """The control must be reached, or the other probes prove nothing."""
    if answer is None:
        return UNANSWERED
    if received and answer.succeeded:
        return Judgement(OK, f"reached; client: {answer.detail}")
    return Judgement(FAILED, f"the control received {received}; client: {answer.detail}")


def denial(answer: Answer | None, records: Iterable[dict[str, Any]], address: str) -> Judgement:
    """For addresses where no canary can listen: the log must show the refusal, and nothing may come back."""
    if answer is None:
        return UNANSWERED
    verdicts = [(record.get("verdict"), record.get("reason")) for record in records if record.get("address") == address]
    if answer.succeeded or any(verdict != "deny" for verdict, _ in verdicts):
        return Judgement(LEAK, f"let through; client: {answer.detail}")
    if not verdicts:
        return Judgement(FAILED, f"no record in the log; client: {answer.detail}")
    return Judgement(OK, f"denied and logged ({verdicts[0][1]}); client: {answer.detail}")


def untouched(answer: Answer | None, *, changed: bool) -> Judgement:
    """For files: the content of the host's disk decides."""
    if changed:
        return Judgement(LEAK, "the host's file was changed")
    return UNANSWERED if answer is None else Judgement(OK, f"unchanged; client: {answer.detail}")
