"""Ids sort by time, cannot leave the sessions' directory, and logs are where the documentation says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox import paths
from netsandbox.errors import HostError, NetsandboxError, UsageError

SESSION = "20250131T120000000-0123456789abcdef"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_the_log_of_a_session_lies_in_its_own_directory(state: Path) -> None:
    assert paths.log_path(SESSION) == f"{state}/netsandbox/sessions/{SESSION}/audit.jsonl"


def test_without_xdg_the_home_directory_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    for value in ("", "relative/path"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert paths.state_home() == "/home/someone/.local/state/netsandbox"


def test_without_home_the_account_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    assert paths.state_home().endswith("/.local/state/netsandbox")

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(NetsandboxError, match="set HOME"):
        paths.state_home()


def test_an_override_is_a_file_or_a_directory_of_files(state: Path) -> None:
    assert paths.log_path(SESSION, f"{state}/my.jsonl") == f"{state}/my.jsonl"
    assert paths.log_path(SESSION, str(state)) == f"{state}/{SESSION}.jsonl"
    assert paths.log_path(SESSION, f"{state}/new/") == f"{state}/new/{SESSION}.jsonl"


def test_new_ids_are_valid_distinct_and_sortable() -> None:
    ids = [paths.new_session_id() for _ in range(200)]
    assert len(set(ids)) == 200
    assert all(map(paths.is_session_id, ids))
    assert ids[0][:18] <= ids[-1][:18]


@pytest.mark.attack(190)
@pytest.mark.parametrize(
    "forged", ["../x", "..", "", "/etc", SESSION + "/..", SESSION[:-1] + "/", SESSION + "\n", "x" * 35]
)
def test_190_a_forged_name_never_becomes_a_path(forged: str) -> None:
    with pytest.raises(UsageError):
        paths.session_dir(forged)


@pytest.mark.attack(190)
@given(st.text(max_size=40))
def test_190_what_is_an_id_has_only_harmless_characters(text: str) -> None:
    if paths.is_session_id(text):
        assert set(text) <= set("0123456789abcdefT-")


def test_sessions_are_listed_newest_first_and_strangers_ignored(state: Path) -> None:
    assert paths.list_sessions() == []
    names = [f"2025013{day}T120000000-0123456789abcdef" for day in (0, 1)]
    for name in [*names, "stranger", ".hidden"]:
        (state / "netsandbox/sessions" / name).mkdir(parents=True)
    assert paths.list_sessions() == names[::-1]


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/home/me/a", "~/a"), ("/home/me", "~"), ("/home/mean", "/home/mean"), ("a/home/me", "a/home/me"), ("", "")],
)
def test_the_home_is_written_shorter(monkeypatch: pytest.MonkeyPatch, path: str, shown: str) -> None:
    for home in ("/home/me", "/home/me/"):
        monkeypatch.setenv("HOME", home)
        assert paths.short(path) == shown
    monkeypatch.setenv("HOME", "/")
    assert paths.short(path) == path


OLD, NEW = "20250102T030405678-0123456789abcdef", "20260102T030405678-0123456789abcdef"
OLD_MOMENT = 1735787045_678_000_000


@pytest.fixture
def kept_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "netsandbox"


@pytest.mark.attack(228)
def test_a_new_state_home_knows_the_first_session_of_the_old_one(
    kept_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a file that a session has left would count as older than every session."""
    monkeypatch.setattr(paths, "memory_home", lambda: str(tmp_path / "memory"))
    paths.session_state_home()
    first = paths.first_session()
    assert first is not None
    (kept_state / paths.FIRST_SESSION).unlink()
    kept_state.rmdir()
    assert paths.first_session() == first, "the state home was deleted"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert paths.first_session() == first, "a variable names another"
    paths.session_state_home()
    (tmp_path / "memory" / paths.FIRST_SESSION).unlink()
    assert paths.first_session() == first, "the new one has it too"
    (tmp_path / "memory" / paths.FIRST_SESSION).write_text("?")
    assert paths.first_session() == paths.UNKNOWN


def test_before_it_there_is_none(kept_state: Path) -> None:
    assert paths.first_session() is None
    paths.made_state_home()
    assert paths.first_session() is None, "reading and remembering is no session"


def test_the_time_of_the_first_session_is_noted_once(kept_state: Path) -> None:
    before = time.time_ns()
    paths.session_state_home()
    first = paths.first_session()
    assert first is not None
    assert abs(first - before) < 60 * 10**9
    kept = (kept_state / paths.FIRST_SESSION).stat()
    paths.session_state_home()
    paths.note_first_session(str(kept_state))
    assert paths.first_session() == first
    assert (kept_state / paths.FIRST_SESSION).stat() == kept


def test_what_is_written_after_it_is_not_older(kept_state: Path, tmp_path: Path) -> None:
    early = tmp_path / "early"
    early.touch()
    while True:  # the clock of files ticks
        late = tmp_path / "tick"
        late.unlink(missing_ok=True)
        late.touch()
        if late.stat().st_ctime_ns > early.stat().st_ctime_ns:
            break
    paths.session_state_home()
    first = paths.first_session()
    late.write_text("x")
    assert first is not None
    assert early.stat().st_ctime_ns < first <= late.stat().st_ctime_ns


def test_sessions_from_before_there_was_a_note_count_by_the_oldest(kept_state: Path) -> None:
    for name in (NEW, OLD, "stranger"):
        (kept_state / "sessions" / name).mkdir(parents=True)
    assert paths.first_session() == OLD_MOMENT
    paths.session_state_home()
    assert paths.first_session() == OLD_MOMENT
    assert (kept_state / paths.FIRST_SESSION).read_text() == str(OLD_MOMENT)


def test_sessions_that_left_nothing_were_at_an_unknown_time(kept_state: Path) -> None:
    (kept_state / "sessions").mkdir(parents=True)
    assert paths.first_session() == paths.UNKNOWN
    paths.session_state_home()
    assert paths.first_session() == paths.UNKNOWN


def test_a_session_of_a_day_that_is_none_was_at_an_unknown_time(kept_state: Path) -> None:
    (kept_state / "sessions" / "20259999T030405678-0123456789abcdef").mkdir(parents=True)
    assert paths.first_session() == paths.UNKNOWN


@pytest.mark.parametrize("content", [b"", b"soon", b"\xff"])
def test_a_damaged_note_is_an_unknown_time(kept_state: Path, content: bytes) -> None:
    kept_state.mkdir(parents=True)
    (kept_state / paths.FIRST_SESSION).write_bytes(content)
    assert paths.first_session() == paths.UNKNOWN


def test_a_note_that_cannot_be_read_is_an_unknown_time(kept_state: Path) -> None:
    kept_state.mkdir(parents=True)
    (kept_state / paths.FIRST_SESSION).mkdir()
    assert paths.first_session() == paths.UNKNOWN


def test_sessions_that_cannot_be_listed_were_at_an_unknown_time(kept_state: Path) -> None:
    kept_state.mkdir(parents=True)
    (kept_state / "sessions").write_text("")
    assert paths.first_session() == paths.UNKNOWN


def test_a_note_that_cannot_be_written_is_an_error(kept_state: Path) -> None:
    with pytest.raises(HostError, match="cannot note the first session"):
        paths.note_first_session(str(kept_state / "nowhere"))


def test_a_disk_that_is_full_leaves_an_unknown_time(kept_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    kept_state.mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        paths.note_first_session(str(kept_state))
    assert paths.first_session() == paths.UNKNOWN


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "home").mkdir()
    return tmp_path


def test_the_configuration_home_is_xdgs(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.config_home() == str(homes / "config" / "netsandbox")
    for ignored in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CONFIG_HOME", ignored)
        assert paths.config_home() == str(homes / "home" / ".config" / "netsandbox")


def test_a_program_is_an_executable_file_of_the_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes").write_text("")
    (tmp_path / "tool").write_text("")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}")
    found = {
        word: paths.is_program(word) for word in ("tool", f"{tmp_path}/tool", "notes", "folder", "./tool", "", "x")
    }
    assert [word for word, is_found in found.items() if is_found] == ["tool", f"{tmp_path}/tool"]
