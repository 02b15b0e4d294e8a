"""The first of a kind is in the log at once; whatever comes after it is counted, and nothing is counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit.folding import MAX_DENIALS, MAX_LISTED, DenialFlood, FoldedRecords, Folding
from netsandbox.audit.log import AuditLog
from netsandbox.audit.reader import read_records


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    opened = AuditLog.open(str(tmp_path / "audit.jsonl"), "s")
    yield opened
    opened.close()


def written(log: AuditLog, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(record.get(name) for name in names) for record in read_records(log.path)]


def test_the_first_is_written_and_the_rest_is_counted(log: AuditLog) -> None:
    repeats = FoldedRecords(log)
    assert all(repeats.note(pid, exe="/bin/a", family="unix") for pid in (7, 8, 9))
    assert repeats.note(7, exe="/bin/b", family="unix")
    first = [(7, "/bin/a", 1), (7, "/bin/b", 1)]
    assert written(log, "pid", "exe", "count") == first
    repeats.flush()
    repeats.flush()
    assert written(log, "pid", "exe", "count") == [*first, (None, "/bin/a", 2)]


def test_one_note_may_stand_for_many(log: AuditLog) -> None:
    repeats = FoldedRecords(log)
    assert repeats.note(7, 3, exe="/bin/a")
    assert repeats.note(7, 4, exe="/bin/a")
    repeats.flush()
    assert written(log, "count") == [(3,), (4,)]
    assert log.counts == {("socket", None): 7}


def test_a_log_that_fails_grants_nothing_known_or_not(log: AuditLog) -> None:
    """INV-5."""
    repeats = FoldedRecords(log)
    assert repeats.note(7, exe="/bin/a")
    log.failed = "No space left on device"
    assert not repeats.note(7, exe="/bin/a")
    assert not repeats.note(7, exe="/bin/b")


def test_kinds_are_bounded_and_those_beyond_are_written_each_time(log: AuditLog) -> None:
    repeats = FoldedRecords(log)
    for number in (*range(MAX_LISTED), "late", "late"):
        assert repeats.note(7, exe=number)
    assert len(written(log)) == MAX_LISTED + 2
    repeats.flush()
    assert len(written(log)) == MAX_LISTED + 2
    assert repeats.left_out == 0


def test_where_it_is_asked_for_those_beyond_are_only_counted(log: AuditLog) -> None:
    repeats = FoldedRecords(log, bounded=True)
    for number in range(MAX_LISTED):
        assert repeats.note(7, exe=number)
    assert not repeats.note(7, 2, exe="late")  # it is not in the log
    assert not repeats.note(7, exe="late")
    assert repeats.note(7, exe=0)
    repeats.flush()
    assert written(log, "exe", "count")[MAX_LISTED:] == [(0, 1)]
    assert repeats.left_out == 3


KIND: Any = ("a.test", 1, True, "rule", "a.test")


class Writer:
    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []
        self.works = True

    def __call__(self, kind: tuple[Any, ...], count: int, size: int) -> bool:
        if self.works:
            self.written.append((kind[0], count))
        return self.works


def test_repeats_are_folded_into_one_later_record() -> None:
    writer = Writer()
    folding = Folding(writer)
    for _ in range(5):
        assert folding.count(KIND) is not None
    assert writer.written == [("a.test", 1)]
    folding.flush()
    folding.flush()
    assert writer.written == [("a.test", 1), ("a.test", 4)]


def test_what_could_not_be_written_is_owed() -> None:
    """INV-1: while the log fails nobody gets an answer, and the counts of before are not forgotten."""
    writer = Writer()
    folding = Folding(writer)
    for _ in range(3):
        folding.count(KIND)
    writer.works = False
    folding.flush()
    assert folding.is_broken
    assert folding.count(KIND) is None
    writer.works = True
    assert folding.count(KIND) is not None
    assert writer.written == [("a.test", 1), ("a.test", 3)]


def test_a_log_that_raises_is_a_log_that_does_not_write() -> None:
    def write(*_args: object, **_fields: object) -> bool:
        raise OSError(28, "No space left on device")

    closed: list[int] = []
    folding = Folding(write, on_close=lambda: closed.append(1))
    assert folding.count(KIND) is None
    assert closed == [1]


def test_one_timer_while_something_is_open_and_none_after() -> None:
    due: list[Any] = []
    folding = Folding(Writer(), call_later=lambda seconds, call: due.append(call))
    folding.count(KIND)
    folding.count(("b.test", 1, True, "rule", None))
    folding.count(KIND)
    assert len(due) == 1
    due.pop()()
    assert len(due) == 1
    due.pop()()
    assert due == []


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=120))
def test_every_question_answered_is_in_exactly_one_record(steps: list[tuple[int, bool, bool]]) -> None:
    writer = Writer()
    folding = Folding(writer, max_kinds=4)
    answered = written_unanswered = 0
    for number, works, flush in steps:
        writer.works = works
        before = len(writer.written)
        if folding.count((f"n{number}", 1, True, "rule", None)) is not None:
            answered += 1
        else:
            written_unanswered += len(writer.written) - before
        if flush:
            folding.flush()
        assert len(folding._open) <= 4
    writer.works = True
    folding.flush()
    assert answered <= sum(count for _, count in writer.written) <= answered + written_unanswered


def test_sizes_are_added_up_and_the_first_record_has_fields_of_its_own() -> None:
    written: list[Any] = []
    folding = Folding(lambda kind, count, size, **first: written.append((kind, count, size, first)) or True)
    for size in (5, 6, 7):
        folding.count(("a",), 1, size, {"pid": size})
    folding.flush()
    assert written == [(("a",), 1, 5, {"pid": 5}), (("a",), 2, 13, {})]


def test_a_kind_that_was_closed_says_so() -> None:
    folding = Folding(Writer(), max_kinds=1)
    first = folding.count(KIND)
    assert first is not None
    assert first.is_open
    second = folding.count(("b.test",))
    assert (first.is_open, second and second.is_open) == (False, True)
    folding.flush()
    assert second is not None
    assert not second.is_open


def test_a_flood_leaves_other_kinds_their_records() -> None:
    flood = DenialFlood(0.0)
    admitted = sum(flood.admits("dns", {"reason": "not-allowed", "host": str(number)}, 1) for number in range(5000))
    assert admitted == MAX_DENIALS
    assert flood.admits("dns", {"reason": "bad-name"}, 1)
    assert flood.admits("egress", {"reason": "not-allowed"}, 1)
    assert flood.admits("dns", {"reason": "not-allowed", "operation": "read"}, 1)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 20))
def test_every_denial_of_a_flood_is_in_one_record(counts: list[int], every: int) -> None:
    flood = DenialFlood(0.0)
    flood._room["dns", "r"] = 3
    total = 0
    for number, count in enumerate(counts):
        fields = {"reason": "r", "count": count, "host": str(number)}
        total += count if flood.admits("dns", fields, count) else 0
        if number % every == 0 or number == len(counts) - 1:
            records = flood.summaries(float(number))
            total += sum(int(str(record["count"])) for _, record in records)
            assert not records or records[-1] == ("dns", fields)
    assert total == sum(counts)
