"""What is watched of a repository where nothing can be covered: found, and nothing is made on the disk."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from netsandbox.backends.broker.landlock_view import LandlockView
from netsandbox.backends.broker.watched_git import WatchedGit
from netsandbox.backends.linux import git_files
from netsandbox.backends.linux.project_results import unprotected_lines
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths
from tests.rig.views import home

__all__ = ["home"]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def build(home: Path, rules: FileRules | None = None) -> tuple[LandlockView, WatchedGit]:
    view = LandlockView(rules or FileRules(), {}, str(home / "app"), str(home / "state"))
    view.build("true", OwnPaths(), None)
    assert isinstance(view.git, WatchedGit)
    return view, view.git


def test_hooks_and_configuration_are_watched_and_nothing_is_made(home: Path) -> None:
    git(home / "app", "init", "-q")
    git(home / "app", "config", "core.hooksPath", ".hooks")
    (home / "app/.hooks").mkdir()
    (home / "app/.vscode").mkdir()
    before = sorted(str(path) for path in (home / "app").rglob("*"))
    view, found = build(home)
    names = {path.removeprefix(f"{home}/app/") for path in view.all_watched()}
    assert {".git/config", ".git/config.worktree", ".git/hooks", ".git/commondir", ".hooks", ".vscode"} <= names
    copied = {each.path.removeprefix(f"{home}/app/.git/"): each.base for each in found.copied}
    assert copied == {"config.worktree": b"", "config": (home / "app/.git/config").read_bytes()}
    assert sorted(str(path) for path in (home / "app").rglob("*")) == before
    assert not any(entry.kind == "cover" for entry in view.root.entries.values())


def test_a_configuration_that_is_a_link_is_only_watched(home: Path) -> None:
    git(home / "app", "init", "-q")
    (home / "app/.git/config").rename(home / "app/shared")
    (home / "app/.git/config").symlink_to("../shared")
    view, found = build(home)
    assert [each.path for each in found.copied] == [f"{home}/app/.git/config.worktree"]
    assert f"{home}/app/.git/config" in view.all_watched()


def test_what_the_user_opened_is_not_watched(home: Path) -> None:
    git(home / "app", "init", "-q")
    (home / "app/.vscode").mkdir()
    (home / "app/.envrc").write_text("")
    rules = FileRules(allow_write=tuple(PathRule(f"{home}/app/{name}", "--rw") for name in (".git", ".vscode")))
    view, _ = build(home, rules)
    names = [path.removeprefix(f"{home}/app/") for path in view.all_watched()]
    assert not any(name.startswith((".git/", ".vscode")) for name in names)
    assert ".envrc" in names


def test_repositories_beyond_the_bound_are_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_files, "MAX_GIT_FOLDERS", 1)
    for name in ("app", "app/sub"):
        (home / name).mkdir(exist_ok=True)
        git(home / name, "init", "-q")
    view, found = build(home)
    assert len(found.held) == 1
    assert any("unprotected" in line for line in unprotected_lines(view, verbose=False))


def test_worktrees_and_links_are_watched(home: Path) -> None:
    git(home / "app", "init", "-q")
    git(home / "app", "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "x")
    git(home / "app", "worktree", "add", "-q", "tree")
    view, _ = build(home)
    names = {path.removeprefix(f"{home}/app/") for path in view.all_watched()}
    assert {"tree/.git", ".git/worktrees/tree/gitdir", ".git/worktrees/tree/commondir"} <= names
