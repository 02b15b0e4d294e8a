"""The root of `--dry-run`: the same as a session's, without a trace on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.namespaces.planned_view import planned_root
from netsandbox.policy.file_rules import FileRules, PathRule


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for name in ("project/.git/hooks", ".npm", "data", ".ssh"):
        (home / name).mkdir(parents=True)
    (home / "project/.git/config").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(home / "project")
    return home


def everything(home: Path) -> list[str]:
    return sorted(str(path) for path in home.rglob("*"))


def test_it_looks_and_leaves_nothing(home: Path) -> None:
    before = everything(home)
    rules = FileRules(
        (PathRule(f"{home}/data", "--allow-read"),),
        (PathRule(f"{home}/made", "--allow-write", folder=True),),
        caches=(PathRule(f"{home}/.npm", "node"),),
    )
    root = planned_root(rules, {b"PATH": os.fsencode(os.environ["PATH"])}, "sh", (f"{home}/absent",))
    assert everything(home) == before
    kinds = {path: (entry.kind, entry.writable) for path, entry in root.entries.items() if path.startswith(str(home))}
    assert kinds[f"{home}"] == ("show", True)
    assert root.entries[f"{home}"].upper == "ours"
    assert kinds[f"{home}/project"] == kinds[f"{home}/made"] == ("show", True)
    assert kinds[f"{home}/data"] == kinds[f"{home}/project/.git/config"] == ("show", False)
    assert kinds[f"{home}/.npm"] == ("cache", True)
    assert f"{home}/.ssh" not in kinds


def test_the_settings_of_an_agent_are_not_copied(home: Path) -> None:
    (home / ".claude.json").write_text("{}")
    (home / "moved").mkdir()
    (home / "moved/.claude.json").write_text("{}")
    before = everything(home)
    rules = FileRules((), tuple(PathRule(f"{home}/{name}.claude.json", "profile claude") for name in ("", "moved/")))
    root = planned_root(rules, {}, "sh", ())
    assert everything(home) == before
    assert f"{home}/.claude.json" not in root.entries  # a file of the private home
    entry = root.entries[f"{home}/moved/.claude.json"]
    assert (entry.writable, entry.upper) == (True, "ours")


def test_a_fresh_home_is_not_made(home: Path) -> None:
    before = everything(home)
    root = planned_root(FileRules(fresh_home=True), {}, "sh", ())
    assert everything(home) == before
    assert "/shared/fresh/" in root.entries[str(home)].source


def test_a_removed_working_folder_is_no_project(home: Path) -> None:
    (home / "gone").mkdir()
    os.chdir(home / "gone")
    (home / "gone").rmdir()
    root = planned_root(FileRules(), {}, "", ())
    assert not [path for path in root.entries if path.startswith(f"{home}/project")]
