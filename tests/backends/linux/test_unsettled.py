"""Notes of sessions: one that is locked is left alone, one that is not is settled once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import unsettled
from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.backends.linux.unsettled import Killed, settle_killed
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.runtime.protection import OwnPaths


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home/shop"
    for name in ("objects", "refs", "hooks"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/config").write_text("[core]\n\tbare = false\n")
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setattr(unsettled, "DYING", 0)
    return folder


def begun(project: Path, **rules: tuple[PathRule, ...]) -> ProjectView:
    view = ProjectView(FileRules(**rules), {}, str(project), str(project.parent / "state"))  # type: ignore[arg-type]
    view.build("true", OwnPaths(), None)
    return view


def kill(view: ProjectView) -> None:
    """As the kernel leaves the note of a supervisor that was killed."""
    view.folders._note = None
    view.folders.close()


def notes(project: Path) -> list[str]:
    return os.listdir(project.parent / "state/unsettled")


def test_a_note_says_what_the_end_needs_to_know(project: Path) -> None:
    view = begun(project, deny_write=(PathRule(f"{project}/keep", "--deny-write"),))
    [name] = notes(project)
    killed = Killed((project.parent / "state/unsettled" / name).read_bytes())
    assert (killed.project, killed.missing, killed.since) == (view.project, view.missing, view.since)
    assert f"{project}/keep" in killed.missing
    assert killed.repositories.found == (f"{project}/.git",)
    assert list(killed.git.held) == [f"{project}/.git"]
    view.folders.close()
    assert notes(project) == []


def test_a_session_that_runs_is_left_alone(project: Path) -> None:
    view = begun(project)
    (project / ".envrc").write_text("")
    assert settle_killed(str(project.parent / "state")) == []
    assert (project / ".envrc").exists()
    view.folders.close()


@pytest.mark.attack(274)
def test_new_names_and_repositories_of_a_killed_session_are_taken_away_once(project: Path) -> None:
    kill(begun(project))
    (project / ".envrc").write_text("")
    for name in ("objects", "refs"):
        (project / "sub/.git" / name).mkdir(parents=True)
    (project / "sub/.git/HEAD").write_text("ref: refs/heads/main\n")
    (project / "sub/.git/config").write_text("[core]\n\tfsmonitor = evil\n")
    lines = settle_killed(str(project.parent / "state"))
    assert all(line.startswith("after a session that was killed (~/shop): ") for line in lines)
    assert not (project / ".envrc").exists()
    assert "evil" not in (project / "sub/.git/config").read_text()
    assert "bare = false" in (project / ".git/config").read_text(), "a known repository stays as it is"
    assert (settle_killed(str(project.parent / "state")), notes(project)) == ([], [])


def test_a_project_that_is_gone_needs_nothing(project: Path) -> None:
    kill(begun(project))
    project.rename(project.parent / "moved")
    assert settle_killed(str(project.parent / "state")) == []
    assert notes(project) == []


def test_a_damaged_note_is_told_once(project: Path) -> None:
    kill(begun(project))
    [name] = notes(project)
    (project.parent / "state/unsettled" / name).write_bytes(b"x")
    [line] = settle_killed(str(project.parent / "state"))
    assert "its note is damaged" in line
    assert notes(project) == []


def test_without_a_state_folder_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert settle_killed(str(tmp_path / "none")) == []
