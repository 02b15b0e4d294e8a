"""Names of sessions by their logs: the chosen one, the one that was made, or that of the folder; the newest counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.audit.log import AuditLog
from netsandbox.paths import log_path, new_session_id
from netsandbox.session.recorded_names import first_record, log_of, name_in, newest_log_of


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def ended(start: str | None = None, end: str | None = None, folder: str | None = "/srv/Farm Shop") -> str:
    """The log of a session; with *end* it has ended."""
    session = new_session_id()
    log = AuditLog.open(log_path(session), session)
    log.write("session.start", name=start, folder=folder)
    if end is not None:
        log.write("session.end", name=end or None, status=0)
    log.close()
    return session


@pytest.mark.parametrize(
    ("start", "end", "name"),
    [("db", None, "db"), ("db", "db", "db"), (None, "shop-2", "shop-2"), (None, "", "farm-shop")],
)
def test_the_name_is_in_the_first_record_or_the_last_or_the_folders(
    start: str | None, end: str | None, name: str
) -> None:
    assert name_in(log_of(ended(start, end))) == name


def test_a_running_session_without_a_name_is_called_like_its_folder() -> None:
    assert name_in(log_of(ended())) == "farm-shop"
    assert name_in(log_of(ended(folder=None))) is None


def test_the_newest_session_of_a_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    older, newer = ended("db"), ended("db")
    ended("other")
    monkeypatch.setattr("netsandbox.session.recorded_names.list_sessions", lambda: [newer, older])
    assert newest_log_of("db") == log_of(newer)
    assert newest_log_of("nobody") is None


def test_a_log_that_cannot_be_read_has_no_name(state: Path) -> None:
    session = ended("db")
    path = Path(log_of(session))
    path.write_bytes(b"\0\xff\n{}\n" + b"x" * 9000)
    assert name_in(str(path)) is None
    assert first_record(str(path)) == {}
    path.unlink()
    assert name_in(str(path)) is None
    path.mkdir()
    assert name_in(str(path)) is None
    assert newest_log_of("db") is None
