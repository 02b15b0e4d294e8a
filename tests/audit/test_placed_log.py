"""Where a placed log is, is noted for `audit`; what cannot be noted or read is not known, and nobody minds."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.audit import placed_log

SESSION = "20250131T120000000-0123456789abcdef"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "netsandbox").mkdir()
    return tmp_path / "netsandbox"


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("path", ["/logs/a.jsonl", "/my logs/\udcff\n.jsonl"])
def test_the_last_note_counts(path: str) -> None:
    assert placed_log.newest() is None
    placed_log.note("20250130T120000000-0123456789abcdef", "/elsewhere")
    placed_log.note(SESSION, path)
    assert placed_log.newest() == (SESSION, path)


@pytest.mark.parametrize("text", ["", SESSION, f"{SESSION} relative", "x /logs/a", f"../{SESSION} /a"])
def test_what_is_no_note_tells_nothing(state: Path, text: str) -> None:
    placed_log.note(SESSION, "/a")
    (state / "placed-log").write_text(text)
    assert placed_log.newest() is None


def test_what_others_can_write_tells_nothing(state: Path) -> None:
    placed_log.note(SESSION, "/a")
    (state / "placed-log").chmod(0o666)
    assert placed_log.newest() is None


def test_without_a_state_folder_nothing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "absent"))
    placed_log.note(SESSION, "/a")
    assert placed_log.newest() is None
    assert not (tmp_path / "absent").exists()


def test_of_a_folder_only_logs_of_sessions_count(tmp_path: Path) -> None:
    assert placed_log.log_in(str(tmp_path)) is None
    for name in (f"{SESSION}.jsonl", "z.jsonl", f"{SESSION}.txt", "20240131T120000000-0123456789abcdef.jsonl"):
        (tmp_path / name).touch()
    assert placed_log.log_in(str(tmp_path)) == f"{tmp_path}/{SESSION}.jsonl"
