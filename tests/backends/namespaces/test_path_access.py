"""What a session may do with a path; tests/integration/test_file_records.py compares it with a real session."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.namespaces import path_access as subject
from netsandbox.backends.namespaces.path_access import PathAccess, path_access
from netsandbox.policy.file_rules import FileRules, PathRule

Ask = Callable[..., PathAccess]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home"
    for name in ("app/.git/hooks", "Documents", ".ssh", ".cache/pip"):
        (folder / name).mkdir(parents=True)
    for name in ("Documents/plan.md", ".gitconfig", "app/a"):
        (folder / name).write_text("x")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def ask(home: Path) -> Ask:
    def about(name: str, **rules: object) -> PathAccess:
        return path_access(FileRules(**rules), {}, str(home / "app"), name if name[0] == "/" else f"{home}/{name}")  # type: ignore[arg-type]

    return about


@pytest.mark.parametrize(
    ("name", "reads", "writes", "why"),
    [
        ("app/a", True, True, subject.WRITABLE),
        ("app/new", True, True, subject.WRITABLE),
        ("app/.git/hooks/x", True, False, subject.PROTECTED),
        ("app/.git/commondir", True, False, subject.PROTECTED),
        ("app/.git/config", True, True, subject.GIT_COPY),
        ("app/new/.git/config", True, True, subject.WRITABLE),
        ("app/new/.git/hooks/x", True, True, subject.WRITABLE),
        ("Documents/plan.md", False, False, subject.PRIVATE),
        (".gitconfig", True, False, subject.SHOWN_ONLY),
        ("/usr/bin", True, False, subject.SHOWN_ONLY),
        ("/var/log/x", False, False, subject.ABSENT),
        ("/tmp/of-the-host", False, False, subject.OWN),
    ],
)
def test_each_place(ask: Ask, name: str, reads: bool, writes: bool, why: str) -> None:
    found = ask(name)
    assert (found.reads, found.writes) == (reads, writes)
    assert found.why in (why, subject.SHOWN_ONLY if why == subject.PROTECTED else why)


def test_rules_change_it(ask: Ask, home: Path) -> None:
    folder = PathRule(f"{home}/Documents", "--option")
    assert ask("Documents/plan.md", allow_read=(folder,)) == PathAccess(
        reads=True, writes=False, why=subject.SHOWN_ONLY
    )
    assert ask("Documents/plan.md", allow_write=(folder,)).writes
    denied = PathRule(f"{home}/app/a", "--option")
    hidden, kept = ask("app/a", deny_read=(denied,)), ask("app/a", deny_write=(denied,))
    assert (hidden.reads, hidden.writes, hidden.rule) == (False, False, "--option ~/app/a")
    assert (kept.reads, kept.writes, kept.rule) == (True, False, "--option ~/app/a")
    assert ask("Documents/plan.md", deny_write=(folder,)).rule is None  # leaving it out would not open it
    outer = PathRule(f"{home}/app/.git", "--option")
    assert ask("app/.git/hooks/x", deny_read=(outer,)).rule == "--option ~/app/.git"
    assert ask(".cache/pip/x", caches=(PathRule(f"{home}/.cache/pip", "--option"),)).why == subject.CACHE


def test_a_rule_opens_hooks(ask: Ask, home: Path) -> None:
    assert ask("app/.git/hooks/x", allow_write=(PathRule(f"{home}/app/.git/hooks", "--option"),)).writes


def test_a_link_is_followed(ask: Ask, home: Path) -> None:
    (home / "app/link").symlink_to(home / "Documents/plan.md")
    assert not ask("app/link").reads


def test_the_other_modes(ask: Ask) -> None:
    assert ask("Documents/plan.md", mode="open").writes
    assert ask("Documents/plan.md", mode="readable").reads
    assert not ask("/usr/bin", mode="readable").writes
    assert ask("/usr/bin", mode="open").writes
    for mode in ("open", "readable"):
        assert ask(".ssh/id", mode=mode) == PathAccess(reads=False, writes=False, why=subject.HIDDEN)


def test_nothing_is_written(ask: Ask, home: Path) -> None:
    before = sorted(str(path) for path in home.rglob("*"))
    ask("app/a", allow_write=(PathRule(f"{home}/made", "profile", folder=True),))
    assert sorted(str(path) for path in home.rglob("*")) == before
