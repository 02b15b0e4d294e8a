"""The first of a kind is in the log at once; whatever comes after it is counted, and nothing is counted twice."""

from __future__ import annotations

from typing import Any

from netsandbox.linux.repeats import MAX_KINDS, Repeats


def test_the_first_is_written_and_the_rest_is_counted(log: Any) -> None:
    repeats = Repeats(log)
    assert all(repeats.note(pid, exe="/bin/a", family="unix") for pid in (7, 8, 9))
    assert repeats.note(7, exe="/bin/b", family="unix")
    assert [(record.get("pid"), record["exe"], record["count"]) for record in log.records] == [
        (7, "/bin/a", 1),
        (7, "/bin/b", 1),
    ]
    repeats.flush()
    repeats.flush()
    assert [(record.get("pid"), record["exe"], record["count"]) for record in log.records[2:]] == [(None, "/bin/a", 2)]


def test_a_log_that_fails_grants_nothing_known_or_not(log: Any) -> None:
    """INV-5."""
    repeats = Repeats(log)
    assert repeats.note(7, exe="/bin/a")
    log.failed = "No space left on device"
    assert not repeats.note(7, exe="/bin/a")
    assert not repeats.note(7, exe="/bin/b")


def test_kinds_are_bounded_and_those_beyond_are_written_each_time(log: Any) -> None:
    repeats = Repeats(log)
    for number in (*range(MAX_KINDS), "late", "late"):
        repeats.note(7, exe=number)
    assert len(log.records) == MAX_KINDS + 2
    repeats.flush()
    assert len(log.records) == MAX_KINDS + 2
