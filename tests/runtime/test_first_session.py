"""The first session is noted once, before its command runs, and what cannot be known counts as long ago."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from netsandbox import paths
from netsandbox.errors import HostError
from netsandbox.runtime.first_session import UNKNOWN, first_session, note

OLD, NEW = "20250102T030405678-0123456789abcdef", "20260102T030405678-0123456789abcdef"
OLD_MOMENT = 1735787045_678_000_000


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "netsandbox"


def test_before_it_there_is_none(state: Path) -> None:
    assert first_session() is None
    paths.made_state_home()
    assert first_session() is None, "reading and remembering is no session"


def test_it_is_noted_once(state: Path) -> None:
    before = time.time_ns()
    paths.session_state_home()
    first = first_session()
    assert first is not None
    assert abs(first - before) < 60 * 10**9
    kept = (state / paths.FIRST_SESSION).stat()
    paths.session_state_home()
    note(str(state))
    assert first_session() == first
    assert (state / paths.FIRST_SESSION).stat() == kept


def test_what_is_written_after_it_is_not_older(state: Path, tmp_path: Path) -> None:
    early = tmp_path / "early"
    early.touch()
    while True:  # the clock of files ticks
        late = tmp_path / "tick"
        late.unlink(missing_ok=True)
        late.touch()
        if late.stat().st_ctime_ns > early.stat().st_ctime_ns:
            break
    paths.session_state_home()
    first = first_session()
    late.write_text("x")
    assert first is not None
    assert early.stat().st_ctime_ns < first <= late.stat().st_ctime_ns


def test_sessions_from_before_there_was_a_note_count_by_the_oldest(state: Path) -> None:
    for name in (NEW, OLD, "stranger"):
        (state / "sessions" / name).mkdir(parents=True)
    assert first_session() == OLD_MOMENT
    paths.session_state_home()
    assert first_session() == OLD_MOMENT
    assert (state / paths.FIRST_SESSION).read_text() == str(OLD_MOMENT)


def test_sessions_that_left_nothing_were_at_an_unknown_time(state: Path) -> None:
    (state / "sessions").mkdir(parents=True)
    assert first_session() == UNKNOWN
    paths.session_state_home()
    assert first_session() == UNKNOWN


def test_a_session_of_a_day_that_is_none_was_at_an_unknown_time(state: Path) -> None:
    (state / "sessions" / "20259999T030405678-0123456789abcdef").mkdir(parents=True)
    assert first_session() == UNKNOWN


@pytest.mark.parametrize("content", [b"", b"soon", b"\xff"])
def test_a_damaged_note_is_an_unknown_time(state: Path, content: bytes) -> None:
    state.mkdir(parents=True)
    (state / paths.FIRST_SESSION).write_bytes(content)
    assert first_session() == UNKNOWN


def test_a_note_that_cannot_be_read_is_an_unknown_time(state: Path) -> None:
    state.mkdir(parents=True)
    (state / paths.FIRST_SESSION).mkdir()
    assert first_session() == UNKNOWN


def test_sessions_that_cannot_be_listed_were_at_an_unknown_time(state: Path) -> None:
    state.mkdir(parents=True)
    (state / "sessions").write_text("")
    assert first_session() == UNKNOWN


def test_a_note_that_cannot_be_written_is_an_error(state: Path) -> None:
    with pytest.raises(HostError, match="cannot note the first session"):
        note(str(state / "nowhere"))


def test_a_disk_that_is_full_leaves_an_unknown_time(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    state.mkdir(parents=True)
    monkeypatch.setattr(os, "write", full)
    note(str(state))
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    assert first_session() == UNKNOWN
