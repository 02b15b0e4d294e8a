"""The end of a session in the mode `project`: what the host takes over, what is removed, what its user is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netsandbox.backends.linux import git_copies, git_files, private_folders, project_results
from netsandbox.backends.linux.git_copies import Copied
from netsandbox.backends.linux.private_folders import open_folder
from netsandbox.backends.linux.project_results import finish, repair, unprotected_lines
from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.policy.file_rules import FileRules
from netsandbox.runtime.private_file import write_new
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


def test_no_file_is_written_where_a_session_can_open_it(
    project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with the same repository would open a draft of the configuration, and write it in its place."""
    made: list[str] = []

    def note(path: str, content: bytes, mode: int, folder: int | None = None) -> os.stat_result:
        above = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else os.path.dirname(path)
        made.append(f"{above}/{os.path.basename(path)}")
        return write_new(path, content, mode, folder)

    for module in (git_copies, git_files, project_results):
        monkeypatch.setattr(module, "write_new", note)
    view = begin()
    copy_of(view).write_text(CONFIG + BRANCH)
    replaced(project, CONFIG + "[user]\n\tname = n\n")
    repair(view)
    finish(view)
    assert (project / ".git/config").read_text() == CONFIG + "[user]\n\tname = n\n" + BRANCH
    assert len(made) > 3
    for path in made:
        assert path.startswith((f"{project}/.git/hooks/", f"{project.parent}/state/"))
    assert os.listdir(project / ".git/hooks") == []


@pytest.mark.parametrize("kind", ["link", "file", "closed"])
def test_without_a_folder_of_hooks_it_is_written_beside(project: Path, begin: Begin, kind: str) -> None:
    hooks = project / ".git/hooks"
    hooks.rmdir()
    if kind == "link":
        hooks.symlink_to(project)
    elif kind == "file":
        hooks.write_text("")
    else:
        hooks.mkdir(0)
    view = begin()
    assert (project / ".git/commondir").read_text() == ".\n"
    copy_of(view).write_text(CONFIG + BRANCH)
    finish(view)
    assert (project / ".git/config").read_text() == CONFIG + BRANCH
    assert not any(name.startswith("netsandbox") for name in os.listdir(project / ".git"))


def test_the_url_of_a_remote_is_not_taken_away(project: Path, begin: Begin) -> None:
    """git takes the name of an unknown remote for a path, and runs the hooks that are there."""
    view = begin()
    replaced(project, "[core]\n\tbare = false\n")
    [line] = repair(view)
    assert "remote.origin.url" in line
    assert (project / ".git/config").read_text() == CONFIG
    replaced(project, CONFIG.replace("example.com", "other.example"))
    assert repair(view) == []


def test_a_second_name_of_a_replaced_file_does_not_last(project: Path, begin: Begin) -> None:
    """The next session would write it."""
    view = begin()
    replaced(project, CONFIG + BRANCH)
    (project / "linked").hardlink_to(project / ".git/config")
    assert finish(view) == []
    (project / "linked").write_text("[core]\n\tfsmonitor = evil\n")
    assert (project / ".git/config").read_text() == CONFIG + BRANCH


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
        if others and config_of(first).is_own():
            repair(others.pop())

    monkeypatch.setattr(project_results.time, "sleep", pause)
    repair(first)
    assert others == []
    assert config_of(first).is_own()
    assert config_of(second).is_own()
    finish(first)
    finish(second)
    assert os.listdir(project / ".git/hooks") == []


def test_a_copy_that_was_put_while_the_session_ran_is_replaced(project: Path, begin: Begin) -> None:
    """Its command may have opened that copy before the cover was back."""
    first, second = begin(), begin()
    replaced(project, CONFIG + BRANCH)
    repair(first)
    with (project / ".git/config").open("a") as opened:
        repair(second)
        opened.write("[core]\n\tfsmonitor = evil\n")
    assert (project / ".git/config").read_text() == CONFIG + BRANCH
