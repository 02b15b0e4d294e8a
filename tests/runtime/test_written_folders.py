"""The marks of folders that sessions could write: which paths they cover, and what a lost or damaged one means."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netsandbox import paths
from netsandbox.errors import HostError
from netsandbox.runtime import written_folders
from netsandbox.runtime.written_folders import (
    ALWAYS,
    forget_written,
    is_held,
    is_written,
    release_written,
    remember_written,
    writers,
)


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(paths, "memory_home", lambda: str(tmp_path / "memory"))
    monkeypatch.setattr(written_folders, "memory_home", lambda: str(tmp_path / "memory"))
    yield tmp_path / "memory"
    release_written()


def test_a_mark_covers_its_folder_and_everything_below() -> None:
    remember_written("/srv/data")
    assert [is_written(path) for path in ("/srv/data", "/srv/data/x", "/srv")] == [True, False, False]
    assert [len(list(writers(path))) for path in ("/srv/data", "/srv/data/x/y", "/srv", "/srv/data2")] == [1, 1, 0, 0]
    remember_written("/")
    assert [len(list(writers(path))) for path in ("/srv/data/x", "/srv", "/")] == [2, 1, 1]


def test_the_first_time_stays_and_the_last_one_moves(memory: Path) -> None:
    remember_written("/srv")
    ((first, last),) = writers("/srv")
    assert first <= last
    (mark,) = (memory / "written").iterdir()
    os.utime(mark, ns=(1, 1))
    remember_written("/srv")
    ((again, later),) = writers("/srv")
    assert (again, later > 1) == (first, True)


@pytest.mark.attack(228)
def test_a_mark_from_a_clock_that_was_ahead_means_always_until_a_session_writes_it_anew(memory: Path) -> None:
    """Otherwise what that session writes after the clock was set right would be older than the session."""
    remember_written("/srv")
    (mark,) = (memory / "written").iterdir()
    mark.write_text(str(time.time_ns() + 3600 * 10**9))
    assert list(writers("/srv/x")) == [(0, ALWAYS)]
    before = time.time_ns()
    remember_written("/srv")
    ((first, last),) = writers("/srv/x")
    assert before - 10**9 < first <= last <= time.time_ns()


def test_a_mark_is_held_until_its_session_ends(memory: Path) -> None:
    assert not is_held("/srv/data/x")
    remember_written("/srv/data")
    assert [is_held(path) for path in ("/srv/data/x", "/srv/data", "/srv")] == [True, True, False]
    release_written()
    assert not is_held("/srv/data/x")
    (mark,) = (memory / "written").iterdir()
    mark.unlink()
    mark.mkdir()
    assert is_held("/srv/data/x"), "what cannot be opened"


def test_a_mark_that_cannot_be_read_means_always(memory: Path) -> None:
    remember_written("/srv")
    (mark,) = (memory / "written").iterdir()
    mark.write_bytes(b"")
    assert list(writers("/srv/x")) == [(0, ALWAYS)]


@pytest.mark.attack(228)
def test_lost_marks_mean_everywhere_since_the_first_session(memory: Path) -> None:
    """Also after later sessions, which would otherwise begin the marks anew."""
    assert list(writers("/srv")) == [], "the twin: before the first session"
    paths.session_state_home()
    first = paths.first_session()
    remember_written("/srv/data")
    assert list(writers("/srv")) == [], "the twin: nothing is lost"
    shutil.rmtree(memory / "written")
    assert list(writers("/srv")) == [(first, ALWAYS)]
    remember_written("/srv/data")
    ((known, last),) = writers("/srv")
    assert (known, last < ALWAYS) == (first, True)
    assert len(list(writers("/srv/data"))) == 2
    assert [path.name for path in memory.iterdir() if path.name.startswith("written")] == ["written"]


def test_a_folder_that_is_gone_is_forgotten() -> None:
    remember_written("/srv/once")
    forget_written("/srv/once")
    forget_written("/srv/once")
    assert not is_written("/srv/once")


def test_nothing_starts_where_no_mark_can_be_made(memory: Path) -> None:
    memory.mkdir()
    (memory / "written").write_text("")
    with pytest.raises(HostError, match="cannot note that '/srv' can be written"):
        remember_written("/srv")
