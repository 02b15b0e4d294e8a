"""A session before anything is started: its refusals, the place of its log, the report of its end."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, NoReturn

import pytest

from netsandbox import system
from netsandbox.errors import HostError, UsageError
from netsandbox.policy.policy import Policy
from netsandbox.session.session import Session, exit_status
from netsandbox.settings import Command, RunSettings

COMMAND = Command(["true"], {}, (0, 1, 2))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def never() -> NoReturn:
    raise AssertionError("the policy was asked for")


def test_there_is_no_session_in_a_session(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv("NETSANDBOX_SESSION", "s")
    with pytest.raises(HostError, match="start the second one outside of it"):
        Session(RunSettings(), sealed=False).run(never, COMMAND)
    assert not (place / "state").exists()


def test_on_another_system_nothing_is_run_unconfined(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """INV-1."""
    monkeypatch.setattr(system, "DEFAULT_BACKEND", None)
    with pytest.raises(HostError, match="runs on Linux and macOS only"):
        Session(RunSettings(), sealed=False).run(never, COMMAND)
    assert not (place / "state").exists()


def log_of(placed: str | None) -> tuple[Session, tuple[str | None, str | None]]:
    session = Session(RunSettings(audit_log=placed), sealed=False)
    try:
        return session, session.context(COMMAND).placed_log()
    finally:
        session.log.close()


def test_a_log_of_our_own_is_hidden_with_the_state_and_needs_no_more(place: Path) -> None:
    session, placed = log_of(None)
    assert placed == (None, None)
    assert Path(session.log.path).is_relative_to(place / "state")


def test_a_log_that_the_user_placed_is_a_file_to_protect_or_a_folder_to_hide(place: Path) -> None:
    file, logs = place / "audit.jsonl", place / "logs"
    logs.mkdir()
    assert log_of(str(file))[1] == (str(file), None)
    session, placed = log_of(str(logs))
    assert placed == (None, str(logs))
    assert Path(session.log.path) == logs / f"{session.id}.jsonl"


@pytest.mark.parametrize("folder", ["work", "."])
def test_a_folder_of_logs_that_the_command_works_in_is_refused(place: Path, folder: str) -> None:
    """If hidden, it would hide what the command works on; its twin beside the working folder is hidden above."""
    with pytest.raises(UsageError, match="is where the command works"):
        log_of(str(place / folder))


def test_a_folder_whose_name_only_begins_as_the_working_folder_is_another(place: Path) -> None:
    (place / "wor").mkdir()
    assert log_of(str(place / "wor"))[1] == (None, str(place / "wor"))


def test_without_a_first_record_there_is_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-5."""
    session = Session(RunSettings(), sealed=False)
    monkeypatch.setattr(type(session.log), "write", lambda self, event, **fields: False)
    held = type("Held", (), {"settings": RunSettings().localhost, "window": None})()
    holds_nothing: Any = type("Holds", (), {"name": "namespaces", "recorded_name": None, "reservation": held})()
    with pytest.raises(HostError, match="the audit log cannot be written"):
        session.write_start(holds_nothing, Policy(), COMMAND)
    session.log.close()


@pytest.mark.parametrize(
    ("status", "told"), [(0, 0), (7 << 8, 7), (255 << 8, 255), (signal.SIGKILL, 137), (signal.SIGSEGV | 0x80, 139)]
)
def test_the_end_is_told_as_shells_do(status: int, told: int) -> None:
    assert exit_status(status) == told


def test_servers_named_by_the_user_are_asked_alone() -> None:
    assert Session(RunSettings(upstream_dns=(("192.0.2.53", 53),)), sealed=False).resolver_files() == ()


def test_otherwise_the_hosts_own_files_are_read() -> None:
    _, hosts = Session(RunSettings(), sealed=False).resolver_files()
    assert hosts == Path("/etc/hosts").read_bytes().decode("utf-8", "replace")


def test_a_file_that_is_not_there_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*arguments: object) -> object:
        raise FileNotFoundError

    session = Session(RunSettings(), sealed=False)
    monkeypatch.setattr("builtins.open", absent)
    assert session.resolver_files() == ("", "")


@pytest.mark.attack(181)
def test_181_a_placed_log_that_somebody_changed_is_reported_by_the_next_session(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(forged: bytes) -> bytes:
        session = Session(RunSettings(audit_log=str(place / "log.jsonl")), sealed=False)
        session.log.write("session.start")
        session._warn_of_changed_log(2)
        session.log.close()
        written = (place / "log.jsonl").read_bytes()
        with (place / "log.jsonl").open("ab") as stream:
            stream.write(forged)
        return written

    run(b"")
    assert b'"policy"' not in run(b'{"v":1,"event":"forged"}\n')
    assert capfd.readouterr().err == ""
    assert b'"event":"policy","detail":"the log of session ' in run(b"")
    assert "is changed; `netsandbox audit verify`" in capfd.readouterr().err
