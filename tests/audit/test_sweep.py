"""Old logs and dead sockets go, live ones and foreign files stay."""

from __future__ import annotations

import fcntl
import socket
from pathlib import Path

import pytest

from netsandbox import paths
from netsandbox.audit.log import AuditLog
from netsandbox.audit.sweep import is_live, sweep
from tests.rig.live import killed_session
from tests.rig.live import sessions as live_sessions


@pytest.fixture(autouse=True)
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Path(paths.sessions_dir())


def make(number: int) -> AuditLog:
    session = f"202501{number:02d}T120000000-0123456789abcdef"
    log = AuditLog.open(paths.log_path(session), session)
    log.write("session.start")
    return log


def test_only_the_newest_sessions_are_kept(sessions: Path) -> None:
    for number in range(1, 6):
        make(number).close()
    assert sweep(keep_sessions=2) == 3
    assert [name[6:8] for name in paths.list_sessions()] == ["05", "04"]


def test_a_log_that_stopped_goes_with_its_explanation(sessions: Path) -> None:
    stopped = make(1)
    stopped._fail("the disk is full")
    stopped.close()
    make(2).close()
    assert sweep(keep_sessions=1) == 1
    assert [entry.name[6:8] for entry in sessions.iterdir()] == ["02"]


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
    assert len(paths.list_sessions()) == 1


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


def test_the_socket_of_a_killed_session_goes_and_one_that_listens_stays(sessions: Path) -> None:
    """INV-10."""
    with live_sessions({}) as (running,):
        killed = killed_session()
        sweep()
        assert not Path(killed).parent.exists()
        assert Path(running.path).exists()


def test_a_socket_that_never_listened_goes_when_its_maker_must_be_dead(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sessions / paths.new_session_id()
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as unborn:
        unborn.bind("control.new")
        sweep()
        assert (folder / "control.new").exists()
        monkeypatch.setattr("netsandbox.audit.sweep.BIRTH_SECONDS", -1)
        sweep()
        assert not folder.exists()


def test_a_killed_session_does_not_keep_its_log_for_ever(sessions: Path) -> None:
    folder = Path(killed_session()).parent
    (folder / "audit.jsonl").write_text("{}\n")
    log = AuditLog.open(paths.log_path("20990101T120000000-0123456789abcdef"), "20990101T120000000-0123456789abcdef")
    log.close()
    sweep(keep_sessions=1)
    assert not folder.exists()


def test_the_output_of_a_session_in_the_background_goes_with_its_log_and_not_while_it_lives(sessions: Path) -> None:
    ended, running = (sessions / paths.new_session_id() for _ in range(2))
    newest = sessions / "20990101T120000000-0123456789abcdef"
    for folder in (ended, running, newest):
        folder.mkdir(parents=True)
        (folder / "output").write_text("text")
        (folder / "output.1").write_text("text")
    with (running / "output").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sweep(keep_sessions=1)
        assert sorted(folder.name for folder in sessions.iterdir()) == sorted((running.name, newest.name))
    sweep(keep_sessions=1)
    assert [folder.name for folder in sessions.iterdir()] == [newest.name]
