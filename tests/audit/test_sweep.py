"""Old logs go, live ones and foreign files stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.audit import places
from netsandbox.audit.log import AuditLog
from netsandbox.audit.sweep import is_live, sweep


@pytest.fixture(autouse=True)
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Path(places.sessions_dir())


def make(number: int) -> AuditLog:
    session = f"202501{number:02d}T120000000-0123456789abcdef"
    log = AuditLog.open(places.log_path(session), session)
    log.write("session.start")
    return log


def test_only_the_newest_sessions_are_kept(sessions: Path) -> None:
    for number in range(1, 6):
        make(number).close()
    assert sweep(keep_sessions=2) == 3
    assert [name[6:8] for name in places.list_sessions()] == ["05", "04"]


def test_a_running_session_is_kept_whatever_its_age(sessions: Path) -> None:
    running = make(1)
    make(2).close()
    assert is_live(running.path)
    assert sweep(keep_sessions=1) == 0
    running.close()
    assert not is_live(running.path)
    assert sweep(keep_sessions=1) == 1


def test_too_many_bytes_go_too_but_never_the_newest_session(sessions: Path) -> None:
    for number in range(1, 4):
        make(number).close()
    assert sweep(keep_bytes=1) == 2
    assert len(places.list_sessions()) == 1


def test_files_of_others_stay(sessions: Path) -> None:
    log = make(1)
    log.close()
    stranger = Path(log.path).parent / "ports"
    stranger.write_text("")
    make(2).close()
    sweep(keep_sessions=1)
    assert stranger.exists()
    assert not Path(log.path).exists()


def test_a_log_that_cannot_be_asked_counts_as_live(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert is_live(str(tmp_path / "link"))
    assert not is_live(str(tmp_path / "missing"))
