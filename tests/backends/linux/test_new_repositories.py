"""What cannot be made harmless in a new repository makes git ignore it, and the user is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux import new_repositories
from netsandbox.backends.linux.project_results import finish
from tests.backends.linux.test_project_results import CONFIG, Begin, begin, project
from tests.backends.linux.test_project_results_git import REFUSED, nested

__all__ = ["begin", "project"]


def fifo(git: Path) -> None:
    (git / "config").unlink()
    os.mkfifo(git / "config")


def long(git: Path) -> None:
    (git / "config").write_bytes(b"#" * (1 << 20) + b"#")


def errors(git: Path) -> None:
    (git / "config").write_text("[core\n")


def locked(git: Path) -> None:
    (git / "config").write_text(REFUSED)
    (git / "config.lock").write_text("")


def modules(git: Path) -> None:
    (git / "modules").symlink_to("/")


def worktrees(git: Path) -> None:
    (git / "worktrees").mkdir()
    (git / "worktrees/x").symlink_to("/")


def elsewhere(git: Path) -> None:
    (git / "commondir").write_text("../..\n")


@pytest.mark.parametrize("spoil", [fifo, long, errors, locked, modules, worktrees, elsewhere])
def test_git_ignores_what_is_an_error(project: Path, begin: Begin, spoil: Callable[[Path], None]) -> None:
    view = begin()
    nested(project, ["sub"])
    spoil(project / "sub/.git")
    [line] = finish(view)
    assert line.startswith("sub/.git is new and cannot be made harmless (")
    assert "it is .git.netsandbox now" in line
    assert os.listdir(project / "sub") == [".git.netsandbox"]


@pytest.mark.parametrize(
    "content", ["gitdir: /\n", "gitdir: ../.git\n", "gitdir:g\n", "gitdir: g\n\n", "", "gitdir: g\0"]
)
def test_git_ignores_a_file_that_leads_elsewhere(project: Path, begin: Begin, content: str) -> None:
    view = begin()
    nested(project, ["sub"])
    (project / "sub/.git").rename(project / "sub/g")
    (project / "sub/.git").write_text(content)
    lines = finish(view)
    assert lines[0].startswith("sub/.git is new and cannot be made harmless (")
    assert not (project / "sub/.git").exists()


def test_a_bare_repository_loses_its_head(project: Path, begin: Begin) -> None:
    view = begin()
    nested(project, ["sub"])
    (project / "sub/.git").rename(project / "bare")
    errors(project / "bare")
    line = finish(view)[0]
    assert "it is HEAD.netsandbox now" in line
    assert not (project / "bare/HEAD").exists()


def test_names_that_exist_are_not_replaced(project: Path, begin: Begin) -> None:
    view = begin()
    nested(project, ["sub"])
    git = project / "sub/.git"
    (git / "hooks/pre-commit").write_text("")
    (git / "hooks.netsandbox").symlink_to("nowhere")
    (git / "config.netsandbox").write_text("old")
    (git / "config").write_text(CONFIG + REFUSED)
    lost = finish(view)[0]
    assert "hooks/pre-commit" in lost
    assert not (git / "hooks").exists()
    assert (git / "config.netsandbox").read_text() == "old"
    assert len(list(git.glob("*.netsandbox-*"))) == 2


def test_what_cannot_be_renamed_is_told(project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    view = begin()
    nested(project, ["sub"])
    errors(project / "sub/.git")

    def refuse(*words: object, **named: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "rename", refuse)
    assert "nor renamed (Operation not permitted); remove it" in finish(view)[0]


@pytest.mark.parametrize("bound", ["MAX_READ", "MAX_VISITED"])
def test_beyond_a_bound_git_ignores_it(
    project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(new_repositories, bound, 0)
    view = begin()
    nested(project, ["sub", "sub/.git/modules/x"])
    assert "sub/.git is new and cannot be made harmless (there " in finish(view)[0]
    assert not (project / "sub/.git").exists()


def test_many_lines_are_cut(project: Path, begin: Begin) -> None:
    view = begin()
    nested(project, [f"n{number}" for number in range(20)])
    for number in range(20):
        (project / f"n{number}/.git/config").write_text(REFUSED)
    lines = finish(view)
    assert lines[new_repositories.MAX_LINES] == "4 more lines about new repositories are left out"
    assert not any("fsmonitor" in path.read_text() for path in project.glob("n*/.git/config"))


def test_an_old_link_among_the_modules_stays(project: Path, begin: Begin) -> None:
    (project.parent / "m").mkdir()
    (project / ".git/modules").symlink_to(project.parent / "m")
    view = begin()
    view.since = os.lstat(project / ".git/modules").st_ctime + 1
    assert finish(view) == []
    assert (project / ".git/modules").is_symlink()


def test_a_known_module_stays_beside_a_new_one(project: Path, begin: Begin) -> None:
    for name in ("objects", "refs"):
        (project / ".git/modules/group/known" / name).mkdir(parents=True)
    known = project / ".git/modules/group/known"
    (known / "HEAD").write_text("ref: refs/heads/main\n")
    (known / "config").write_text(CONFIG + REFUSED)
    view = begin()
    nested(project, ["sub", "plain"])
    (project / "sub/.git/config").write_text(CONFIG + REFUSED)
    (project / "sub/.git").rename(project / ".git/modules/group/new")
    (project / ".git/modules/link").symlink_to(project / "plain/.git")
    known.chmod(0)
    (project / ".git/modules/group").chmod(0)
    lines = finish(view)
    known.chmod(0o755)
    assert (known / "config").read_text() == CONFIG + REFUSED
    assert "fsmonitor" not in (project / ".git/modules/group/new/config").read_text()
    assert (project / ".git/modules/link.netsandbox").is_symlink()
    assert ".git/modules/group/new is new and lost" in " ".join(lines)


def test_an_index_that_cannot_be_read_is_told(project: Path, begin: Begin) -> None:
    view = begin()
    (project / ".git/index").write_bytes(b"DIRC" + b"\0\0\xe0\0" * 9)
    assert ".git/index cannot be read: it may name new repositories" in finish(view)
