"""The first of a kind is in the log at once; whatever comes after it is counted, and nothing is counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netsandbox.audit.folding import MAX_KINDS, FoldedRecords
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
    for number in (*range(MAX_KINDS), "late", "late"):
        assert repeats.note(7, exe=number)
    assert len(written(log)) == MAX_KINDS + 2
    repeats.flush()
    assert len(written(log)) == MAX_KINDS + 2
    assert repeats.left_out == 0


def test_where_it_is_asked_for_those_beyond_are_only_counted(log: AuditLog) -> None:
    repeats = FoldedRecords(log, bounded=True)
    for number in range(MAX_KINDS):
        assert repeats.note(7, exe=number)
    assert not repeats.note(7, 2, exe="late")  # it is not in the log
    assert not repeats.note(7, exe="late")
    assert repeats.note(7, exe=0)
    repeats.flush()
    assert written(log, "exe", "count")[MAX_KINDS:] == [(0, 1)]
    assert repeats.left_out == 3
