"""`netsandbox explain PATH`: what, why, and the option."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from netsandbox.cli import explain
from netsandbox.cli.explain_path import is_path

pytestmark = pytest.mark.usefixtures("no_session")


@pytest.fixture
def no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = Path(os.path.realpath(tmp_path)) / "home"
    for name in ("work", "Documents", ".ssh"):
        (home / name).mkdir(parents=True)
    (home / "Documents/plan.md").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    return home


def test_a_file_that_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["~/Documents/plan.md"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "~/Documents/plan.md"
    assert lines[1].startswith("  read         denied   the home inside is private")
    assert lines[2].strip() == "to allow it: --allow-read ~/Documents"
    assert lines[4].strip() == "to allow it: --allow-write ~/Documents"


def test_the_named_option_turns_the_answer(capsys: pytest.CaptureFixture[str], no_session: Path) -> None:
    assert explain.main(["--allow-read", f"{no_session}/Documents", "~/Documents/plan.md", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["read"] == {"allowed": True, "change": None}
    assert found["write"] == {"allowed": False, "change": "--allow-write ~/Documents"}


@pytest.mark.parametrize("word", [".", "./new", "../work/new", ".hidden"])
def test_the_project(capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert explain.main([word]) == 0
    assert "write        allowed" in capsys.readouterr().out


def test_too_much_and_secrets_have_other_advice(capsys: pytest.CaptureFixture[str]) -> None:
    explain.main(["~"])
    assert "name the folders in it, or use --files readable" in capsys.readouterr().out
    explain.main(["~/.ssh"])
    shown = capsys.readouterr().out
    assert "--allow-read ~/.ssh\n" in shown
    assert "a place of secrets" in shown
    explain.main(["/var/tmp/x"])
    assert "--share-tmp" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["example.com", "example.com:443", "[::1]", "https://example.com/a", "*.example.com"])
def test_a_host_is_no_path(word: str) -> None:
    assert not is_path(word)
