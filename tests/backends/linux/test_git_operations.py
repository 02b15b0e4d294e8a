"""Operations of git that a session left; tests/integration/test_git_leftovers.py has the host go on with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux import git_operations
from netsandbox.backends.linux.git_operations import contents, settle

TODO = "rebase-merge/git-rebase-todo"
EVIL = "pick 1\nexec ./evil\n"


@pytest.fixture
def git(tmp_path: Path) -> Path:
    (tmp_path / "rebase-merge").mkdir()
    (tmp_path / TODO).write_text("pick 1\nexec make\n")
    return tmp_path


def test_nothing_happens_to_what_the_host_had(git: Path) -> None:
    assert settle(str(git), contents(str(git))) == []
    assert (git / TODO).read_text() == "pick 1\nexec make\n"
    assert os.listdir(git / "rebase-merge") == ["git-rebase-todo"]


def test_a_line_that_was_added_is_taken_back_and_kept_beside(git: Path) -> None:
    known = contents(str(git))
    (git / TODO).write_text(f"exec make\n{EVIL}")
    [line] = settle(str(git), known)
    assert "git would run: exec ./evil; git-rebase-todo.netsandbox beside it" in line
    assert (git / TODO).read_text() == "exec make\npick 1\n"
    assert (git / f"{TODO}.netsandbox").read_text() == f"exec make\n{EVIL}"
    assert settle(str(git), known) == []


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "large"])
def test_what_is_no_plain_file_is_replaced_by_what_was_there(
    git: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = contents(str(git))
    monkeypatch.setattr(git_operations, "MAX_FILE", 100)
    (git / "evil").write_text(EVIL)
    (git / TODO).unlink()
    if kind == "link":
        (git / TODO).symlink_to("../evil")
    elif kind == "pipe":
        os.mkfifo(git / TODO)
    elif kind == "folder":
        (git / TODO).mkdir()
    else:
        (git / TODO).write_text(EVIL + "#" * 100)
    assert len(settle(str(git), known)) == 1
    assert (git / TODO).read_text() == "pick 1\nexec make\n"


@pytest.mark.parametrize("is_link", [True, False])
def test_a_folder_that_is_none_is_put_aside(git: Path, *, is_link: bool) -> None:
    (git / "rebase-merge").rename(git / "r")
    (git / "rebase-merge").symlink_to("r") if is_link else (git / "rebase-merge").write_text("")
    [line] = settle(str(git), {})
    assert "so it is rebase-merge.netsandbox now and git ignores it" in line
    assert not os.path.lexists(git / "rebase-merge")


def test_what_cannot_be_put_aside_is_told(git: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object, **named: object) -> str:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(git_operations, "move_aside", refuse)
    (git / TODO).write_text(EVIL)
    [line] = settle(str(git), {})
    assert "nor renamed (Operation not permitted); remove it before you use git there" in line


def test_a_strategy_of_the_session_is_gone(git: Path) -> None:
    for operation in ("rebase-merge", "rebase-apply"):
        (git / operation).mkdir(exist_ok=True)
        (git / operation / "strategy").write_text("x/evil\n")
    assert len(settle(str(git), contents(str(git)))) == 0
    assert len(settle(str(git), {TODO: b""})) == 3  # of which one is the host's own command
    assert not (git / "rebase-apply/strategy").exists()
