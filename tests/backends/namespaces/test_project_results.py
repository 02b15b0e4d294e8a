"""The end of a session in the mode `project`: what the host takes over, what is removed, what its user is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.namespaces import project_results
from netsandbox.backends.namespaces.private_folders import open_folder
from netsandbox.backends.namespaces.project_results import finish, repair
from netsandbox.backends.namespaces.project_view import ProjectView
from netsandbox.policy.file_rules import FileRules
from netsandbox.runtime.protection import OwnPaths

CONFIG = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.com/a\n'
BRANCH = '[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n'

Begin = Callable[[], ProjectView]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home/project"
    for name in ("objects", "refs", "hooks"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/config").write_text(CONFIG)
    (folder / ".git/config").chmod(0o640)
    monkeypatch.setenv("HOME", str(folder.parent))
    return folder


@pytest.fixture
def begin(project: Path) -> Begin:
    def make() -> ProjectView:
        view = ProjectView(FileRules(), {}, str(project), str(project.parent / "state"))
        view.build("true", OwnPaths(), None)
        return view

    return make


def copy_of(view: ProjectView) -> Path:
    assert view.git is not None
    return Path(next(each.copy for each in view.git.copied if each.path.endswith("/.git/config")))


def test_a_session_that_changed_nothing_leaves_nothing(project: Path, begin: Begin) -> None:
    before = sorted(path.name for path in (project / ".git").iterdir())
    view = begin()
    assert (project / ".git/commondir").exists()
    assert finish(view) == []
    assert sorted(path.name for path in (project / ".git").iterdir()) == before
    assert (project / ".git/config").read_text() == CONFIG
    assert not copy_of(view).parent.exists()


def test_the_host_takes_over_branches_and_the_rest_is_named(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH + "[core]\n\tfsmonitor = evil\n")
    [line] = finish(view)
    assert "core.fsmonitor" in line
    assert (project / ".git/config").read_text() == CONFIG + BRANCH
    assert (project / ".git/config").stat().st_mode & 0o777 == 0o640
    assert not (project / ".git/config.lock").exists()


def test_a_remote_that_leads_elsewhere_is_told(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG.replace("example.com", "other.example"))
    [line] = finish(view)
    assert "https://other.example/a" in line


def test_what_the_host_changed_meanwhile_stays(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH)
    (project / ".git/config").write_text(CONFIG + "[user]\n\tname = n\n")
    assert finish(view) == []
    assert (project / ".git/config").read_text() == CONFIG + "[user]\n\tname = n\n" + BRANCH


def test_what_could_run_a_program_and_came_meanwhile_is_taken_back_at_the_end(project: Path, begin: Begin) -> None:
    view = begin()
    (project / ".git/config").write_text(CONFIG + "[core]\n\tpager = x\n")
    [line] = finish(view)
    assert "core.pager" in line
    assert (project / ".git/config").read_text() == CONFIG


def test_a_locked_configuration_stays(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH)
    (project / ".git/config.lock").write_text("")
    [line] = finish(view)
    assert "config.lock" in line
    assert (project / ".git/config").read_text() == CONFIG


@pytest.mark.parametrize("content", ["[core\n", "k = v\n", '[a]\n\tb = "\n'])
def test_a_copy_with_errors_changes_nothing(project: Path, begin: Begin, content: str) -> None:
    view = begin()
    copy_of(view).write_text(content)
    [line] = finish(view)
    assert "errors" in line
    assert (project / ".git/config").read_text() == CONFIG
    assert not (project / ".git/config.lock").exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "gone", "large"])
def test_a_copy_that_is_no_plain_file_changes_nothing(project: Path, begin: Begin, kind: str) -> None:
    view = begin()
    copy, other = copy_of(view), project.parent / "other"
    other.write_text(CONFIG + BRANCH)
    copy.unlink()
    if kind == "link":
        copy.symlink_to(other)
    elif kind == "pipe":
        os.mkfifo(copy)
    elif kind == "folder":
        (copy / "a/b").mkdir(parents=True)
        (copy / "a").chmod(0)
    elif kind == "large":
        copy.write_text("#" * (1 << 21))
    assert finish(view) == []
    assert (project / ".git/config").read_text() == CONFIG


def test_a_configuration_that_became_a_link_is_not_followed(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH)
    other = project.parent / "other"
    other.write_text("")
    (project / ".git/config").unlink()
    (project / ".git/config").symlink_to(other)
    [line] = finish(view)
    assert "could not be written" in line
    assert other.read_text() == ""


def test_a_folder_that_became_a_link_is_not_followed(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH)
    (project / ".git").rename(project.parent / "moved")
    (project / ".git").symlink_to(project.parent / "moved")
    finish(view)
    assert (project.parent / "moved/config").read_text() == CONFIG
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        open_folder(f"{project}/.git/refs")


def test_placeholders_stay_while_another_session_needs_them(project: Path, begin: Begin) -> None:
    first, second = begin(), begin()
    finish(first)
    first.folders.close()
    assert (project / ".git/commondir").exists()
    finish(second)
    assert not (project / ".git/commondir").exists()


def test_what_is_used_meanwhile_is_not_removed(project: Path, begin: Begin) -> None:
    view = begin()
    (project / ".git/config.worktree").write_text("[user]\n\tname = n\n")
    (project / ".git/commondir").write_text("../x\n")
    finish(view)
    assert (project / ".git/config.worktree").exists()
    assert (project / ".git/commondir").exists()


def test_new_files_that_the_host_obeys_are_named(project: Path, begin: Begin) -> None:
    (project / ".vscode").mkdir()
    view = begin()
    (project / ".envrc").write_text("")
    (project / ".github/workflows").mkdir(parents=True)
    (project / "sub/.git").mkdir(parents=True)
    for name in ("objects", "refs"):
        (project / "bare" / name).mkdir(parents=True)
    (project / "bare/HEAD").write_text("")
    (project / "plain\x1b").mkdir()
    [line] = finish(view)
    for name in (".envrc", ".github/workflows", "sub/.git", "bare"):
        assert name in line
    assert ".vscode" not in line


def test_without_a_repository_a_new_one_is_named(project: Path, begin: Begin) -> None:
    (project / ".git").rename(project.parent / "moved")
    view = begin()
    assert view.git is None
    (project.parent / "moved").rename(project / ".git")
    [line] = finish(view)
    assert ".git" in line


def replaced(project: Path, text: str) -> None:
    """As git replaces its configuration, which takes a cover away."""
    (project / ".git/new").write_text(text)
    (project / ".git/new").rename(project / ".git/config")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_results, "PAUSE", 0)


def test_a_file_that_the_host_replaced_is_replaced_by_a_copy(project: Path, begin: Begin) -> None:
    """The session may have kept the first one open or linked."""
    view = begin()
    replaced(project, CONFIG + "[user]\n\tname = n\n")
    linked = project / "linked"
    linked.hardlink_to(project / ".git/config")
    assert repair(view) == []
    linked.write_text("[core]\n\tfsmonitor = evil\n")
    assert (project / ".git/config").read_text() == CONFIG + "[user]\n\tname = n\n"
    identity = (project / ".git/config").stat().st_ino
    assert repair(view) == []
    assert (project / ".git/config").stat().st_ino == identity


def test_what_could_run_a_program_is_taken_back(project: Path, begin: Begin) -> None:
    view = begin()
    replaced(project, CONFIG + BRANCH + "[core]\n\tfsmonitor = evil\n")
    [line] = repair(view)
    assert "core.fsmonitor" in line
    assert (project / ".git/config").read_text() == CONFIG + BRANCH


def test_it_is_taken_back_again_if_the_hosts_git_wrote_it_anew(project: Path, begin: Begin) -> None:
    """git may have read the file before it was in order."""
    view = begin()
    evil = "[core]\n\tfsmonitor = evil\n"
    replaced(project, CONFIG + evil)
    repair(view)
    replaced(project, CONFIG + evil + BRANCH)
    assert len(repair(view)) == 1
    assert (project / ".git/config").read_text() == CONFIG + BRANCH


def test_changes_that_run_nothing_are_the_hosts(project: Path, begin: Begin) -> None:
    view = begin()
    replaced(project, CONFIG + BRANCH)
    assert repair(view) == []
    assert (project / ".git/config").read_text() == CONFIG + BRANCH


def test_a_file_with_errors_is_taken_back_and_a_missing_one_is_left(project: Path, begin: Begin) -> None:
    view = begin()
    replaced(project, "[core\n")
    assert len(repair(view)) == 1
    assert (project / ".git/config").read_text() == CONFIG
    (project / ".git/config").unlink()
    assert repair(view) == []


def test_sessions_that_are_stopped_together_keep_one_copy(
    project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second session makes its copy while the first waits for that."""
    first, second = begin(), begin()
    replaced(project, CONFIG + BRANCH)
    others = [second]

    def pause(seconds: float) -> None:
        assert first.git is not None
        if others and first.git.is_own(f"{project}/.git/config"):
            repair(others.pop())

    monkeypatch.setattr(project_results.time, "sleep", pause)
    repair(first)
    assert others == []
    assert first.git is not None
    assert second.git is not None
    assert first.git.is_own(f"{project}/.git/config")
    assert second.git.is_own(f"{project}/.git/config")


def test_a_copy_that_was_put_while_the_session_ran_is_replaced(project: Path, begin: Begin) -> None:
    """Its command may have opened that copy before the cover was back."""
    first, second = begin(), begin()
    replaced(project, CONFIG + BRANCH)
    repair(first)
    with (project / ".git/config").open("a") as opened:
        repair(second)
        opened.write("[core]\n\tfsmonitor = evil\n")
    assert (project / ".git/config").read_text() == CONFIG + BRANCH
