"""The first of a kind is written at once, repeats are folded, nothing is counted twice or lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from netsandbox_dns.folding import FoldedQueries

KIND: Any = ("a.test", 1, True, "rule", "a.test")


class Log:
    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []
        self.works = True

    def __call__(self, host: str, qtype: int, **fields: Any) -> bool:
        if self.works:
            self.written.append((host, fields["count"]))
        return self.works


def test_repeats_are_folded_into_one_later_record() -> None:
    log = Log()
    ledger = FoldedQueries(log, lambda: None)
    for _ in range(5):
        assert ledger.record(KIND) is not None
    assert log.written == [("a.test", 1)]
    ledger.flush()
    ledger.flush()
    assert log.written == [("a.test", 1), ("a.test", 4)]


def test_what_could_not_be_written_is_owed() -> None:
    """INV-1: while the log fails nobody gets an answer, and the counts of before are not forgotten."""
    log = Log()
    ledger = FoldedQueries(log, lambda: None)
    for _ in range(3):
        ledger.record(KIND)
    log.works = False
    ledger.flush()
    assert ledger.broken
    assert ledger.record(KIND) is None
    log.works = True
    assert ledger.record(KIND) is not None
    assert log.written == [("a.test", 1), ("a.test", 3)]


def test_a_log_that_raises_is_a_log_that_does_not_write() -> None:
    def note(*_args: object, **_fields: object) -> bool:
        raise OSError(28, "No space left on device")

    lapses: list[int] = []
    ledger = FoldedQueries(note, lambda: lapses.append(1))
    assert ledger.record(KIND) is None
    assert lapses == [1]


def test_one_timer_while_something_is_open_and_none_after() -> None:
    due: list[Any] = []
    ledger = FoldedQueries(Log(), lambda: None, lambda seconds, call: due.append(call))
    ledger.record(KIND)
    ledger.record(("b.test", 1, True, "rule", None))
    ledger.record(KIND)
    assert len(due) == 1
    due.pop()()
    assert len(due) == 1
    due.pop()()
    assert due == []


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=120))
def test_every_question_answered_is_in_exactly_one_record(steps: list[tuple[int, bool, bool]]) -> None:
    log = Log()
    ledger = FoldedQueries(log, lambda: None, capacity=4)
    answered = written_unanswered = 0
    for number, works, flush in steps:
        log.works = works
        before = len(log.written)
        if ledger.record((f"n{number}", 1, True, "rule", None)) is not None:
            answered += 1
        else:
            written_unanswered += len(log.written) - before
        if flush:
            ledger.flush()
        assert len(ledger._open) <= 4
    log.works = True
    ledger.flush()
    assert answered <= sum(count for _, count in log.written) <= answered + written_unanswered
