"""The end of a session in the mode `project`: what the host takes over, what is removed, what its user is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netsandbox.backends.linux import git_results, private_folders
from netsandbox.backends.linux.git_copies import Copied
from netsandbox.backends.linux.project_results import finish, unprotected_lines
from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.policy.file_rules import FileRules
from netsandbox.runtime.protection import OwnPaths

CONFIG = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.com/a\n'
BRANCH = '[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n'

Begin = Callable[..., ProjectView]


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
    def make(state: str = "state") -> ProjectView:
        view = ProjectView(FileRules(), {}, str(project), str(project.parent / state))
        view.build("true", OwnPaths(), None)
        return view

    return make


def config_of(view: ProjectView) -> Copied:
    assert view.git is not None
    return next(each for each in view.git.copied if each.path.endswith("/.git/config"))


def copy_of(view: ProjectView) -> Path:
    return Path(config_of(view).copy)


def test_a_session_that_changed_nothing_leaves_nothing(project: Path, begin: Begin) -> None:
    before = sorted(path.name for path in (project / ".git").iterdir())
    view = begin()
    assert (project / ".git/commondir").exists()
    assert finish(view) == []
    assert sorted(path.name for path in (project / ".git").iterdir()) == before
    assert (project / ".git/config").read_text() == CONFIG
    assert not copy_of(view).parent.exists()


def test_a_folder_without_rights_and_too_many_repositories_have_lines_of_their_own(
    project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = begin()
    assert view.git is not None
    assert unprotected_lines(view, verbose=True) == []
    view.git.closed += [f"{project}/data", f"{project}/b/.git"]
    monkeypatch.setattr(os, "access", lambda path, _: not path.endswith("/data"))
    many = "too many repositories: ~/project/b/.git; these are read-only, start in one of them"
    assert unprotected_lines(view, verbose=False) == [many]
    locked = "~/project/data cannot be read by you, so the session has it read-only"
    assert unprotected_lines(view, verbose=True) == [locked, many]
    view.git.closed[:] = [f"{project}/data", f"{project}/other/data"]
    assert unprotected_lines(view, verbose=False) == []
    (line,) = unprotected_lines(view, verbose=True)
    assert line.endswith("~/project/other/data cannot be read by you, so the session has them read-only")


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
    assert "config.netsandbox now; that is taken back" in line
    assert other.read_text() == ""
    assert (project / ".git/config").read_text() == CONFIG + BRANCH


def test_a_folder_that_became_a_link_is_not_followed(project: Path, begin: Begin) -> None:
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH)
    (project / ".git").rename(project.parent / "moved")
    (project / ".git").symlink_to(project.parent / "moved")
    lines = finish(view)
    assert lines[0].startswith(".git is new and cannot be made harmless (it is a link)")
    assert (project.parent / "moved/config").read_text() == CONFIG
    assert os.readlink(project / ".git.netsandbox") == str(project.parent / "moved")


@pytest.mark.parametrize("state", ["state", "other"])
def test_placeholders_stay_while_another_session_needs_them(project: Path, begin: Begin, state: str) -> None:
    first, second = begin(), begin(state)
    finish(first)
    first.folders.close()
    assert (project / ".git/commondir").exists()
    finish(second)
    assert not (project / ".git/commondir").exists()


def test_sessions_that_begin_and_end_together_find_their_placeholders(project: Path, begin: Begin) -> None:
    """Those of several users, with state homes of their own, do not see each other's locks there."""

    def sessions(state: str) -> None:
        for _ in range(40):
            view = begin(state)
            assert (project / ".git/commondir").read_text() == ".\n"
            assert (project / ".git/config.worktree").exists()
            finish(view)
            view.folders.close()

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(sessions, f"state-{number}") for number in range(3)]:
            done.result(60)
    assert sorted(os.listdir(project / ".git")) == ["HEAD", "config", "hooks", "objects", "refs"]


def test_a_session_without_its_state_home_leaves_the_placeholders(
    project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = begin()
    monkeypatch.setattr(private_folders, "memory_home", lambda: str(project / "none/x"))
    (project / "none").write_text("")
    shutil.rmtree(project.parent / "state")
    assert finish(view) == []
    assert (project / ".git/commondir").exists()


def test_a_worktree_in_a_folder_of_the_session_is_told(project: Path, begin: Begin) -> None:
    view = begin()
    for name, place in (("lost", "/nonexistent/lost/.git"), ("kept", f"{project}/.git/HEAD")):
        (project / ".git/worktrees" / name).mkdir(parents=True)
        (project / ".git/worktrees" / name / "gitdir").write_text(f"{place}\n")
    [line] = finish(view)
    assert "worktree /nonexistent/lost is not on the host" in line
    assert "--allow-write" in line
    assert finish(begin()) == []


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
    kept, line = finish(view)
    assert "would obey it: .envrc;" in kept
    assert not (project / ".envrc").exists()
    for name in (".github/workflows", "sub/.git", "bare"):
        assert name in line
    assert ".vscode" not in line


def test_without_a_repository_a_new_one_is_named(project: Path, begin: Begin) -> None:
    (project / ".git").rename(project.parent / "moved")
    view = begin()
    assert view.git is None
    (project.parent / "moved").rename(project / ".git")
    [line] = finish(view)
    assert ".git" in line


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_results, "PAUSE", 0)
