"""What happens to the host's own configuration file when a session has ended that could write it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import git_results
from netsandbox.backends.linux.project_results import finish
from tests.backends.linux.test_project_results import BRANCH, CONFIG, Begin, begin, copy_of, no_pause, project

__all__ = ["begin", "no_pause", "project"]

EVIL = "[core]\n\tfsmonitor = evil\n"


def replaced(project: Path, text: str) -> None:
    """As git replaces its configuration, which takes a cover away."""
    (project / ".git/new").write_text(text)
    (project / ".git/new").rename(project / ".git/config")


def test_what_could_run_a_program_is_taken_back_and_the_hosts_changes_stay(project: Path, begin: Begin) -> None:
    view = begin()
    hosts = CONFIG + BRANCH + "[user]\n\tname = n\n"
    replaced(project, hosts + EVIL)
    [line] = finish(view)
    assert "core.fsmonitor; that is taken back" in line
    assert (project / ".git/config").read_text() == hosts
    assert (project / ".git/config").stat().st_mode & 0o777 == 0o640


def test_changes_that_run_nothing_are_the_hosts(project: Path, begin: Begin) -> None:
    view = begin()
    replaced(project, CONFIG + BRANCH)
    identity = (project / ".git/config").stat().st_ino
    assert finish(view) == []
    assert (project / ".git/config").stat().st_ino == identity


def test_a_file_with_errors_and_a_missing_one_are_restored(project: Path, begin: Begin) -> None:
    for spoil in (lambda: replaced(project, "[core\n"), (project / ".git/config").unlink):
        view = begin()
        spoil()
        [line] = finish(view)
        assert "is taken back" in line
        assert (project / ".git/config").read_text() == CONFIG
        view.folders.close()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "large"])
def test_what_is_no_plain_file_is_replaced_by_the_known_content(project: Path, begin: Begin, kind: str) -> None:
    view = begin()
    config = project / ".git/config"
    config.unlink()
    (project / "x").write_text(EVIL)
    if kind == "link":
        config.symlink_to("../x")
    elif kind == "pipe":
        os.mkfifo(config)
    elif kind == "folder":
        config.mkdir()
    else:
        config.write_text(EVIL + "#" * (1 << 20))
    [line] = finish(view)
    assert "config.netsandbox now; that is taken back" in line
    assert config.read_text() == CONFIG
    assert (project / "x").read_text() == EVIL
    assert os.path.lexists(project / ".git/config.netsandbox")


def test_a_new_second_name_does_not_last(project: Path, begin: Begin) -> None:
    """The next session would write it."""
    view = begin()
    (project / "linked").hardlink_to(project / ".git/config")
    assert finish(view) == []
    (project / "linked").write_text(EVIL)
    assert (project / ".git/config").read_text() == CONFIG


def test_a_lock_keeps_nothing_from_being_taken_back(project: Path, begin: Begin) -> None:
    view = begin()
    replaced(project, CONFIG + EVIL)
    (project / ".git/config.lock").write_text("")
    [line] = finish(view)
    assert "is taken back" in line
    assert (project / ".git/config").read_text() == CONFIG


def test_a_url_that_leads_elsewhere_is_told(project: Path, begin: Begin) -> None:
    view = begin()
    replaced(project, CONFIG.replace("example.com", "other.example"))
    [line] = finish(view)
    assert "has new URLs now: remote.origin.url https://other.example/a" in line


def test_what_the_host_cannot_write_is_told(project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: object) -> None:
        raise OSError(28, "No space left on device")

    view = begin()
    replaced(project, CONFIG + EVIL)
    monkeypatch.setattr(git_results, "write_new", full)
    [line] = finish(view)
    assert "could not be written (No space left on device); look at it before you use git there" in line


def test_a_folder_that_we_may_not_enter_is_told(project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> bool:
        raise PermissionError(13, "Permission denied")

    view = begin()
    monkeypatch.setattr(git_results, "unlock", refuse)
    assert any("cannot be looked at (Permission denied)" in line for line in finish(view))


def test_a_repository_that_is_gone_has_no_line(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH)
    (project / ".git").rename(project.parent / "moved")
    assert finish(view) == []


def test_a_git_directory_in_the_place_of_another_counts_as_new(project: Path, begin: Begin) -> None:
    view = begin()
    (project / ".git").rename(project.parent / "moved")
    for name in ("objects", "refs", "hooks"):
        (project / ".git" / name).mkdir(parents=True)
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git/config").write_text(CONFIG)
    (project / ".git/hooks/pre-commit").write_text("evil")
    lines = finish(view)
    assert any(".git is new and lost what can run programs here: hooks/pre-commit" in line for line in lines)
    assert not (project / ".git/hooks").exists()


def test_operations_of_worktrees_are_looked_at_also_of_new_ones(project: Path, begin: Begin) -> None:
    view = begin()
    todo = project / ".git/worktrees/new/rebase-merge/git-rebase-todo"
    todo.parent.mkdir(parents=True)
    todo.write_text("exec evil\n")
    assert any("worktrees/new/rebase-merge/git-rebase-todo lost" in line for line in finish(view))
    assert todo.read_text() == ""
