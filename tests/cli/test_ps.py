"""`netsandbox ps`: who is running, for people and for programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError
from tests.rig.live import killed_session, sessions


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("NETSANDBOX_SESSION", raising=False)
    return tmp_path


def test_every_session_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "shop"}, {"name": "blog", "command": ["sh", "-c", "x y"]}):
        assert dispatch(["ps"]) == 0
    shown = capsys.readouterr()
    head, *rows = shown.out.splitlines()
    assert " ".join(head.split()) == "NAME AGE POLICY ALLOWED DENIED MEMORY PORTS COMMAND"
    assert sorted(row.split()[0] for row in rows) == ["blog", "shop"]
    assert any(row.endswith("2       4K      3000 http://3000.shop.localhost:20099/  npm run dev") for row in rows)
    assert shown.err == ""


def test_for_programs_it_is_the_list_of_what_the_sessions_say(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({}) as (live,):
        assert dispatch(["ps", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == [live.status]


def test_nothing_running_is_a_title_for_scripts_and_advice_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["ps"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1:] == []
    assert shown.err == "netsandbox: no session is running; start one with `netsandbox run -- CMD`\n"


def test_nothing_running_is_an_empty_list_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["ps", "--json"]) == 0
    assert capsys.readouterr() == ("[]\n", "")


def test_inside_a_session_it_says_where_to_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETSANDBOX_SESSION", "x")
    assert dispatch(["ps"]) == 0
    assert "run this command outside" in capsys.readouterr().err


def test_a_killed_session_is_not_shown_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """INV-10."""
    path = killed_session()
    assert dispatch(["ps", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"
    assert not os.path.exists(path)


def test_a_session_that_talks_nonsense_is_named_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"v": 99}) as (strange,):
        assert dispatch(["ps", "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "[]\n"
    assert shown.err.startswith(f"netsandbox: {strange.id} is running but does not answer; ")


@pytest.mark.attack(172)
def test_hostile_text_reaches_the_terminal_tamely(capsys: pytest.CaptureFixture[str]) -> None:
    with sessions({"name": "\x1b[2J", "command": ["\n\x07", "\u202e"], "mode": "\r"}):
        assert dispatch(["ps"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == 2
    assert all(line.isascii() and line.isprintable() for line in shown.splitlines())


@pytest.mark.parametrize("words", [["shop"], ["--", "shop"], ["--no-such"]])
def test_what_it_does_not_take_is_an_error(words: list[str]) -> None:
    with pytest.raises(UsageError):
        dispatch(["ps", *words])


def test_sessions_that_ended_and_kept_changes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = KeptOverlays(str(tmp_path / "netsandbox"))
    for name in ("fix", "shop"):
        kept.begin(name, str(tmp_path)).close()
    with sessions({"name": "shop"}):
        assert dispatch(["ps"]) == 0
    assert "fix ended and kept changes; see `netsandbox changes`" in capsys.readouterr().err
