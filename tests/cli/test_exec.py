"""`netsandbox exec`: what is refused before a session is asked. tests/integration/test_exec.py has real sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.cli import exec as command
from netsandbox.cli.main import dispatch
from netsandbox.errors import HostError, UsageError
from tests.rig.live import sessions


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["shop"],
        ["shop", "--"],
        ["shop", "--", ""],
        ["--", "true"],
        ["a", "b", "--", "true"],
        ["--cwd", "/", "shop"],
    ],
)
def test_it_needs_one_name_and_a_command(words: list[str]) -> None:
    with pytest.raises(UsageError, match="write `netsandbox exec NAME -- CMD`"):
        dispatch(["exec", *words])


@pytest.mark.parametrize("words", [["two", "--", "true"], ["two", "ls", "-la"], ["--cwd", "/", "two", "ls", "--all"]])
def test_an_unknown_name_lists_the_others(words: list[str]) -> None:
    with sessions({"name": "one"}), pytest.raises(UsageError, match="choose one of one"):
        dispatch(["exec", *words])


def test_a_session_that_is_suspended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    session = "20261117T120000000-0123456789abcdef"
    monkeypatch.setattr(command, "survey", lambda: ([], [session]))
    monkeypatch.setattr(command, "is_suspended", lambda found: found == session)
    with pytest.raises(HostError, match="continue it with `fg`"):
        dispatch(["exec", session, "--", "true"])


def test_a_mac_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "IS_MACOS", True)
    with pytest.raises(UsageError, match="works on Linux only"):
        dispatch(["exec", "one", "--", "true"])
