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


@pytest.mark.attack(272)
def test_changed_protected_files_are_put_back_and_dangerous_settings_of_git_too(home: Any, landlocked: Try) -> None:
    git = repository(home)
    put(home, "work/.vscode/tasks.json", "{}")
    found = landlocked(
        [
            ("sh", "git config core.fsmonitor ./run"),
            ("sh", "echo x >.git/hooks/pre-commit; echo x >.vscode/tasks.json; echo x >.envrc"),
        ]
    )
    assert any("can change what the host runs" in line for line in found.notices)
    [line] = [line for line in found.lines if line.startswith("put back in ")]
    assert ".vscode/tasks.json" in line
    assert ".git/hooks/pre-commit" in line
    assert (home.work / ".vscode/tasks.json").read_text() == "{}"
    assert not (git / "hooks/pre-commit").exists()
    assert not (home.work / ".envrc").exists()
    assert any("kept out of" in line and ".envrc" in line for line in found.lines)
    assert any("core.fsmonitor" in line and "taken back" in line for line in found.lines)
    assert "fsmonitor" not in (git / "config").read_text()


PLANTS = {
    "removed": "rm -r .vscode",
    "a link instead": "mv .vscode x; ln -s x .vscode; echo x > x/tasks.json",
    "a link to the same": "mv .vscode x; ln -s x .vscode",
    "a file instead": "rm -r .vscode; echo x > .vscode",
    "without rights": "echo x > .vscode/tasks.json; chmod 0 .vscode/tasks.json .vscode",
    "many names, and one behind them": "cd .vscode; touch $(seq 100000 100400); echo x > tasks.json; echo x > zz.json",
    "names for a terminal": r"mkdir $(printf '.vscode/a\033]0;x\007\377b')",
    "another file in it": "echo x > .vscode/launch.json; mkdir .vscode/a; echo x > .vscode/a/b",
}


@pytest.mark.attack(272)
@pytest.mark.parametrize("plant", PLANTS)
def test_a_protected_folder_is_as_before(home: Any, landlocked: Try, plant: str) -> None:
    put(home, "work/.vscode/tasks.json", "{}")
    found = landlocked([("sh", PLANTS[plant])])
    assert sorted(path.name for path in (home.work / ".vscode").iterdir()) == ["tasks.json"]
    assert not (home.work / ".vscode").is_symlink()
    assert (home.work / ".vscode/tasks.json").read_text() == "{}"
    assert any(line.startswith("put back") for line in found.lines)


def test_a_file_that_is_too_large_to_keep_is_named(home: Any, landlocked: Try) -> None:
    put(home, "work/.vscode/tasks.json", "x" * (1 << 19))
    found = landlocked([("sh", "echo x >> .vscode/tasks.json")])
    assert any("changed by the session: " in line and ".vscode/tasks.json" in line for line in found.lines)


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
