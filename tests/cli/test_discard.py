"""`netsandbox discard`: the changes go, after a question, and the project stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.backends.linux.kept_overlays import KeptOverlays
from netsandbox.cli import discard as subject
from netsandbox.cli.main import dispatch
from netsandbox.errors import UsageError
from netsandbox.paths import state_home
from tests.cli.test_changes import Put, app, put  # noqa: F401 (fixtures)


def kept() -> list[str]:
    return KeptOverlays(state_home()).names()


def test_without_a_yes_nothing_goes(app: Path, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    put("a", "two\n")
    monkeypatch.setattr(subject.sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(subject, "confirm", lambda question: False)
    assert dispatch(["discard", "fix"]) == 1
    assert kept() == ["fix"]
    monkeypatch.setattr(subject, "confirm", lambda question: True)
    assert dispatch(["discard", "fix"]) == 0
    assert kept() == []
    assert (app / "a").read_text() == "one\n"


def test_one_unknown_name_keeps_all(app: Path, put: Put) -> None:  # noqa: F811
    with pytest.raises(UsageError, match="choose one of fix"):
        dispatch(["discard", "fix", "nobody", "--yes"])
    assert kept() == ["fix"]
    with pytest.raises(UsageError, match="needs the NAME"):
        dispatch(["discard"])
    assert dispatch(["discard", "fix", "fix", "--yes"]) == 0
    assert kept() == []
