"""What the host runs or obeys in a project: changes of it are named, dangerous settings of git are taken back."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rig.landlocked import DONE, Try, home, put

__all__ = ["home"]
pytestmark = pytest.mark.ordinary_user


def repository(home: Any) -> Path:
    subprocess.run([*home.identity.prefix, "git", "init", "-q", str(home.work)], check=True, env=home.environment(None))
    folder: Path = home.work / ".git"
    return folder


def test_changed_protected_files_are_named_and_dangerous_settings_of_git_are_taken_back(
    home: Any, landlocked: Try
) -> None:
    git = repository(home)
    put(home, "work/.vscode/tasks.json", "{}")
    found = landlocked(
        [
            ("sh", "git config core.fsmonitor ./run"),
            ("sh", "echo x >.git/hooks/pre-commit; echo x >.vscode/tasks.json; echo x >.envrc"),
        ]
    )
    assert any("can change what the host runs" in line for line in found.notices)
    named = [line for line in found.lines if line.startswith("changed by the session")]
    assert len(named) == 1
    assert ".vscode/tasks.json" in named[0]
    assert ".git/hooks/pre-commit" in named[0]
    assert any("new in the project: .envrc" in line for line in found.lines)
    assert any("core.fsmonitor" in line and "taken back" in line for line in found.lines)
    assert "fsmonitor" not in (git / "config").read_text()


def test_harmless_settings_of_git_stay(home: Any, landlocked: Try) -> None:
    git = repository(home)
    found = landlocked([("sh", "git remote add origin https://example.com/x.git")])
    assert found.lines == []
    assert "example.com" in (git / "config").read_text()


def test_an_unchanged_project_has_no_line(home: Any, landlocked: Try) -> None:
    repository(home)
    put(home, "work/.vscode/tasks.json", "{}")
    found = landlocked(
        [
            (
                "sh",
                "echo x >file; git add file; git status --short -uno; cp .vscode/tasks.json t; mv t .vscode/tasks.json",
            )
        ]
    )
    assert found.results[0][:2] == [0, "A  file\n"]
    assert found.lines == []


def test_a_name_that_the_user_opened_is_not_compared(home: Any, landlocked: Try) -> None:
    put(home, "work/.vscode/tasks.json", "{}")
    found = landlocked([("write", home.work / ".vscode/tasks.json")], allow_write=[home.work / ".vscode"])
    assert (found.results, found.lines) == ([DONE], [])


def test_a_configuration_that_became_a_link_is_named(home: Any, landlocked: Try) -> None:
    repository(home)
    found = landlocked([("sh", "mv .git/config x && ln -s ../x .git/config")])
    assert any(".git/config" in line for line in found.lines)
