"""A placed log that somebody replaced, cut, rewrote or continued is told from the one that was written (H5)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.audit import kept_head
from netsandbox.audit.kept_head import HeadKeeper, kept_heads, parse
from netsandbox.audit.log import AuditLog
from netsandbox.audit.verify import verify
from tests.audit.conftest import SESSION

LATER = "20250201T120000000-0123456789abcdef"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "netsandbox"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "placed.jsonl"


def opened(path: Path, session: str = SESSION) -> AuditLog:
    log = AuditLog.open(str(path), session, cap_bytes=None)
    log.keeper = HeadKeeper(str(path), session, log.head)
    assert log.write("session.start", command="npm")
    return log


def ended(log: AuditLog) -> str:
    assert log.keeper is not None
    log.write("egress", verdict="allow", reason="rule", host="example.com")
    log.write("session.end", status=0)
    log.close()
    return log.keeper.fate


def forge(path: Path, session: str = SESSION) -> None:
    """A whole log with a right chain, as any program can write it."""
    log = AuditLog.open(str(path), session, cap_bytes=None)
    log.write("session.start", command="npm")
    log.write("session.end", status=0)
    log.close()


def test_a_log_as_it_was_left_is_whole(path: Path, state: Path) -> None:
    assert ended(opened(path)) == "-"
    report = verify(str(path))
    assert (report.ok, report.problems, report.notes) == (True, [], [])
    assert [(head.session, head.seq, head.is_done) for head in kept_heads()] == [(SESSION, 4, True)]
    assert [item.stat().st_mode & 0o777 for item in (state / "log-heads").iterdir()] == [0o600]


@pytest.mark.attack(181)
@pytest.mark.parametrize("session", [SESSION, "20250131T130000000-0123456789abcdef"])
def test_181_a_replaced_log_is_found(path: Path, session: str) -> None:
    ended(opened(path))
    path.unlink()
    forge(path, session)
    report = verify(str(path))
    assert not report.ok
    assert "replaced" in report.problems[0].text


@pytest.mark.attack(181)
def test_181_a_log_cut_at_the_seal_of_an_earlier_session_is_found(path: Path) -> None:
    ended(opened(path))
    whole = path.read_bytes()
    assert ended(opened(path, LATER)) == "-"
    assert verify(str(path)).ok
    path.write_bytes(whole)
    assert not verify(str(path)).ok


@pytest.mark.attack(181)
def test_181_records_that_somebody_added_are_found_by_verify_and_by_the_next_session(path: Path) -> None:
    ended(opened(path))
    forge(path, "20250131T130000000-0123456789abcdef")
    assert "goes on after" in verify(str(path)).problems[0].text
    assert ended(opened(path, LATER)) == f"changed {SESSION}"
    report = verify(str(path))
    assert [problem.text for problem in report.problems] == [
        f"was changed after session {SESSION} and before session {LATER}"
    ]
    assert ended(opened(path, "20250202T120000000-0123456789abcdef")) == f"changed {SESSION}"
    assert not verify(str(path)).ok


def test_a_log_that_was_removed_is_mentioned(path: Path) -> None:
    ended(opened(path))
    path.unlink()
    assert ended(opened(path, LATER)) == f"gone {SESSION}"
    report = verify(str(path))
    assert report.ok
    assert report.notes == [f"the log of session {SESSION} at this path was gone when session {LATER} began"]


@pytest.mark.attack(181)
def test_181_a_log_that_is_replaced_while_its_session_runs_is_found(path: Path) -> None:
    log = opened(path)
    assert verify(str(path)).ok
    path.rename(path.with_suffix(".moved"))
    forge(path)
    assert not verify(str(path)).ok
    log.close()


def test_a_log_that_was_moved_is_found_by_its_session(path: Path, tmp_path: Path) -> None:
    ended(opened(path))
    moved = tmp_path / "elsewhere.jsonl"
    path.rename(moved)
    report = verify(str(moved))
    assert (report.ok, report.notes) == (True, [])
    lines = moved.read_bytes().splitlines(keepends=True)
    moved.unlink()
    forge(moved)
    assert not verify(str(moved)).ok
    assert lines


def test_the_log_of_a_killed_session_has_its_head_among_its_lines(path: Path) -> None:
    log = opened(path)
    log.write("egress", verdict="allow", reason="rule", host="example.com")
    os.close(log._fd)
    report = verify(str(path))
    assert report.problems == []
    assert not report.ok
    assert ended(opened(path, LATER)) == "-"
    assert verify(str(path)).ok


def test_a_log_whose_head_was_not_kept_says_so(path: Path) -> None:
    forge(path)
    report = verify(str(path))
    assert report.ok
    assert "not kept" in report.notes[0]


def test_what_cannot_be_kept_does_not_stop_a_session(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert ended(opened(path)) == "-"
    assert kept_heads() == []


def test_a_head_that_others_can_write_does_not_count(path: Path, state: Path) -> None:
    ended(opened(path))
    next((state / "log-heads").iterdir()).chmod(0o666)
    assert kept_heads() == []


def test_the_number_of_heads_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_head, "MAX_HEADS", 4)
    for number in range(20):
        HeadKeeper(str(tmp_path / str(number)), SESSION, "0" * 64).close()
    assert len(kept_heads()) <= 4


@given(st.binary(max_size=300))
def test_any_bytes_can_be_parsed(data: bytes) -> None:
    head = parse(data)
    assert head is None or head.path.startswith("/")
