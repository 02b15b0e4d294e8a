"""`netsandbox changes`, `apply` and `discard` on overlays that are made by hand."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux.kept_overlays import FILE_CLOCK, KeptOverlays
from netsandbox.cli import changes as subject
from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError
from netsandbox.paths import state_home

Put = Callable[[str, str], Path]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    folder = Path(os.path.realpath(tmp_path)) / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "a").write_text("one\n")
    return folder


@pytest.fixture
def put(app: Path) -> Put:
    """A file that the session `fix` changed."""
    while time.clock_gettime_ns(FILE_CLOCK) <= (app / "a").stat().st_ctime_ns:
        time.sleep(0.001)  # the clock of files stands still between two ticks
    held = KeptOverlays(state_home()).begin("fix", str(app))
    held.close()

    def made(name: str, text: str) -> Path:
        path = Path(held.overlay.data, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return made


def test_without_a_name_the_sessions_are_listed(app: Path, put: Put, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["changes"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["fix", "~/app"]
    assert dispatch(["changes", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["overlays"]
    assert (row["name"], row["folder"], row["running"]) == ("fix", str(app), False)


def test_nothing_kept_is_said(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["changes"]) == 0
    assert "run --overlay" in capsys.readouterr().err


def test_changes_have_notes(app: Path, put: Put, capsys: pytest.CaptureFixture[str]) -> None:
    put("a", "two\n")
    put(".envrc", "x")
    os.mkfifo(put("src/x", "").parent / "pipe")
    (app / "a").write_text("host\n")
    assert dispatch(["changes", "fix"]) == 0
    rows = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["a"].endswith("changed on the host")
    assert rows[".envrc"].endswith("protected, name .envrc")
    assert rows["src/pipe"].endswith("never applied")
    assert dispatch(["changes", "fix", "--json"]) == 0
    found = {row["path"]: row for row in json.loads(capsys.readouterr().out)["changes"]}
    assert found["a"] == {
        "path": "a",
        "change": "changed",
        "kind": "file",
        "protected": None,
        "conflict": "changed on the host",
    }
    assert found[".envrc"]["protected"] == ".envrc"


def test_the_lines_that_changed_are_shown_and_obeyed_by_no_terminal(
    app: Path, put: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    put("a", "one\n\ttwo\x1b[31m\n")
    put("binary", "x\0")
    put("na\x1bme", "x\n")
    put("large", "x\n" * subject.MAX_COMPARED)
    assert dispatch(["changes", "fix", "--diff"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "+\ttwo\\x1b[31m" in out.splitlines()
    assert "added file binary" in out.splitlines()
    assert "added file large" in out.splitlines()
    assert "+++ b/na\\x1bme" in out.splitlines()


@pytest.mark.parametrize("words", [["fix", "b"], ["--diff"]])
def test_other_words_are_errors(app: Path, put: Put, words: list[str]) -> None:
    with pytest.raises(UsageError):
        dispatch(["changes", *words])


@pytest.mark.parametrize("command", [["changes"], ["apply", "x"], ["discard", "x"]])
def test_a_mac_has_no_overlays(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "IS_MACOS", True)
    with pytest.raises(UsageError, match="Mac"):
        dispatch(command)
