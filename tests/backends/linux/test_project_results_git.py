"""The end of a session with several repositories."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from netsandbox.backends.linux import git_results
from netsandbox.backends.linux.project_results import finish
from netsandbox.backends.linux.project_view import ProjectView
from tests.backends.linux.test_project_results import BRANCH, CONFIG, Begin, begin, project

__all__ = ["begin", "project"]

REFUSED = "[core]\n\tfsmonitor = evil\n"


def nested(project: Path, names: list[str]) -> None:
    for name in names:
        for folder in ("objects", "refs", "hooks"):
            (project / name / ".git" / folder).mkdir(parents=True)
        (project / name / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (project / name / ".git/config").write_text(CONFIG)


def copies(view: ProjectView) -> list[Path]:
    assert view.git is not None
    return [Path(each.copy) for each in view.git.copied if each.path.endswith("/.git/config")]


def test_lines_about_urls_come_first_and_are_never_left_out(project: Path, begin: Begin) -> None:
    nested(project, [f"n{number}" for number in range(12)])
    view = begin()
    for copy in copies(view):
        copy.write_text(CONFIG + REFUSED)
    copies(view)[-1].write_text(CONFIG.replace("example.com", "elsewhere.test"))
    taken = project / "n10/.git/config"
    taken.write_text(CONFIG + REFUSED)
    lines = finish(view)
    assert "has new URLs" in " ".join(lines[:2])
    assert "is taken back" in " ".join(lines[:2])
    assert len(lines) == git_results.MAX_LINES + 1
    assert "left out" in lines[-1]
    assert taken.read_text() == CONFIG


def test_sessions_wait_once_for_all_locks_of_git(project: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command may leave a lock beside each configuration file."""
    nested(project, ["a", "b", "c"])
    view = begin()
    for copy in copies(view):
        copy.write_text(CONFIG + BRANCH)
    locks = [project / name / ".git/config.lock" for name in ("a", "b", "c", ".")]
    for lock in locks:
        lock.write_text("")
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    lines = finish(view)
    assert len(lines) == 4
    assert all("config.lock exists" in line for line in lines)
    assert len(pauses) < git_results.MAX_WAITS
    assert all(lock.exists() for lock in locks)


def test_new_repositories_are_named_and_lose_what_could_run_a_program(project: Path, begin: Begin) -> None:
    view = begin()
    nested(project, ["plain", "risky"])
    (project / "risky/.git/config").write_text(CONFIG + REFUSED)
    (project / "plain/.git/config").write_text(CONFIG + "[core]\n\tlogallrefupdates = true\n")
    lost, named = finish(view)
    assert "risky/.git is new and lost" in lost
    assert "core.fsmonitor" in lost
    assert "new in the project: plain/.git, risky/.git; " in named
    assert (project / "risky/.git/config").read_text() == CONFIG
    assert (project / "risky/.git/config.netsandbox").read_text() == CONFIG + REFUSED
    assert (project / "plain/.git/config").read_text() == CONFIG + "[core]\n\tlogallrefupdates = true\n"
