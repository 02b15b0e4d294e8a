"""The entries that protect the repositories of a project; tests/integration/test_git_attacks.py attacks them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netsandbox.backends.linux import git_files
from netsandbox.backends.linux.git_copies import read_file
from netsandbox.backends.linux.git_files import COPIES, GitFiles
from netsandbox.backends.linux.private_folders import PrivateFolders
from netsandbox.backends.linux.session_root import PROJECT, SessionRoot
from netsandbox.errors import HostError

Protect = Callable[..., GitFiles]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home/project"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder.parent))
    return folder


@pytest.fixture
def protect(project: Path) -> Protect:
    def run(
        *repositories: str, named: tuple[str, ...] = (), shown: str | None = None, denied: tuple[str, ...] = ()
    ) -> GitFiles:
        root = SessionRoot()
        root.show(str(project), writable=True, rank=PROJECT)
        if shown is not None:
            root.show(shown, writable=True, rank=PROJECT)
        folders = PrivateFolders(str(project.parent / "state"), str(project))
        git = GitFiles(root, folders, named, denied)
        git.protect([f"{project}/{name}" for name in repositories or (".git",)])
        return git

    return run


def repository(folder: Path, config: str = "[core]\n\tbare = false\n") -> Path:
    for name in ("objects", "refs", "hooks"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(config)
    return folder


def is_read_only(git: GitFiles, path: object) -> bool:
    entry = git.root.entries.get(str(path))
    return entry is not None and entry.kind == "show" and not entry.writable


def is_pinned(git: GitFiles, path: object) -> bool:
    entry = git.root.entries.get(str(path))
    return entry is not None and entry.kind == "show" and entry.writable and f"{path}" in steps(git)


def steps(git: GitFiles) -> list[str]:
    return [texts[-1] for _, _, texts in git.root.steps()]


def test_a_repository_is_pinned_and_its_configuration_is_a_copy(project: Path, protect: Protect) -> None:
    repository(project / ".git", "[a]\n\tb = c\n")
    git = protect()
    assert is_pinned(git, project / ".git")
    assert is_read_only(git, project / ".git/hooks")
    assert is_read_only(git, project / ".git/commondir")
    copied = next(each for each in git.copied if each.path == f"{project}/.git/config")
    cover = git.root.entries[copied.path]
    assert cover.kind == "cover"
    assert cover.source == f"{COPIES}/{os.path.basename(copied.copy)}"
    assert Path(copied.copy).read_text() == "[a]\n\tb = c\n"
    assert git.root.entries[COPIES].source == os.path.dirname(copied.copy)


def test_missing_names_are_made_with_a_content_that_means_nothing(project: Path, protect: Protect) -> None:
    (repository(project / ".git") / "hooks").rmdir()
    (project / ".git/config").unlink()
    git = protect()
    assert (project / ".git/commondir").read_text() == ".\n"
    assert (project / ".git/config.worktree").read_text() == ""
    assert (project / ".git/config").read_text() == ""
    assert list((project / ".git/hooks").iterdir()) == []
    assert sorted(os.path.basename(path) for path in git.made) == ["commondir", "config", "config.worktree", "hooks"]


def test_a_bare_repository_keeps_its_meaning(project: Path, protect: Protect) -> None:
    """With a `commondir`, git would no longer obey core.bare."""
    repository(project / "x.git", "[core]\n\tbare = true\n")
    protect("x.git")
    assert not (project / "x.git/commondir").exists()


def test_what_the_user_opened_is_not_protected(project: Path, protect: Protect) -> None:
    repository(project / ".git")
    git = protect(named=(f"{project}/.git/config",))
    assert f"{project}/.git/config" not in git.root.entries
    assert is_read_only(git, project / ".git/hooks")
    assert protect(named=(f"{project}/.git",)).copied == []


@pytest.mark.parametrize("section", ["[include]", '[includeIf "gitdir:x"]'])
def test_included_files_and_hooks_in_the_project_are_read_only(project: Path, protect: Protect, section: str) -> None:
    (project / "conf").mkdir()
    (project / "conf/one").write_text("[core]\n\thooksPath = my/hooks\n[include]\n\tpath = two\n\tpath = missing\n")
    (project / "conf/two").write_text(f"[include]\n\tpath = two\n\tpath = {project}/linked\n")
    (project / "my/hooks").mkdir(parents=True)
    (project / "real").write_text("")
    (project / "linked").symlink_to("real")
    repository(project / ".git", f"{section}\n\tpath = ../conf/one\n")
    git = protect()
    for name in ("conf/one", "conf/two", "my/hooks", "real"):
        assert is_read_only(git, project / name), name
    assert is_pinned(git, project / "conf")
    assert is_pinned(git, project / "my")
    assert git.root.entries[f"{project}/linked"].kind == "cover"
    assert git.absent == [f"{project}/conf/missing"]


def test_the_users_own_settings_count_too(project: Path, protect: Protect) -> None:
    (project.parent / ".gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
    (project / ".githooks").mkdir()
    repository(project / ".git")
    assert is_read_only(protect(), project / ".githooks")


def test_worktrees_elsewhere_are_seen_by_their_git_file(project: Path, protect: Protect) -> None:
    """Otherwise `git worktree prune` would remove them."""
    own = repository(project / ".git") / "worktrees/x"
    other, gone = project.parent / "other", repository(project / ".git/y") / "z"
    own.mkdir(parents=True)
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(f"{other}/.git\n")
    (own / "commondir").write_text("../..\n")
    lost = own.parent / "lost"
    lost.mkdir()
    (lost / "gitdir").write_text(f"{gone}/.git\n")
    git = protect()
    assert is_read_only(git, other / ".git")
    assert f"{gone}/.git" not in git.root.entries
    for path in (own / "gitdir", own / "commondir"):
        assert is_read_only(git, path)
    assert is_pinned(git, own)
    assert is_pinned(git, own.parent)
    assert git.root.entries[f"{own}/config.worktree"].kind == "cover"


def test_a_worktree_protects_the_repository_that_it_belongs_to(project: Path, protect: Protect) -> None:
    common = repository(project.parent / "main/.git")
    own = common / "worktrees/project"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{project}/.git\n")
    (project / ".git").write_text(f"gitdir: {own}\n")
    git = protect(shown=str(common))
    assert is_read_only(git, project / ".git")
    assert is_read_only(git, common / "hooks")
    assert is_read_only(git, own / "commondir")
    assert git.root.entries[f"{common}/config"].kind == "cover"


def test_nothing_is_written_to_a_repository_outside(project: Path, protect: Protect) -> None:
    """An earlier session may have made a `commondir` that names it."""
    other = repository(project.parent / "other/.git")
    before = sorted(os.listdir(other))
    (repository(project / ".git") / "commondir").write_text("../../other/.git\n")
    git = protect()
    assert [each.path for each in git.copied] == [f"{project}/.git/config.worktree"]
    assert sorted(os.listdir(other)) == before


def test_files_of_operations_are_known_also_those_of_worktrees(project: Path, protect: Protect) -> None:
    for folder in ("rebase-merge", "worktrees/a/sequencer"):
        (repository(project / ".git") if folder == "rebase-merge" else project / ".git").joinpath(folder).mkdir(
            parents=True
        )
    (project / ".git/rebase-merge/git-rebase-todo").write_text("exec make\n")
    (project / ".git/worktrees/a/sequencer/opts").write_text("")
    assert protect().operations == {
        f"{project}/.git/rebase-merge/git-rebase-todo": b"exec make\n",
        f"{project}/.git/worktrees/a/sequencer/opts": b"",
    }


def test_a_git_directory_that_was_replaced_is_not_held(project: Path, protect: Protect) -> None:
    repository(project / ".git")
    git = protect()
    assert git.is_held(f"{project}/.git")
    (project / ".git").rename(project / "old")
    assert not git.is_held(f"{project}/.git")
    (project / ".git").mkdir()
    assert not git.is_held(f"{project}/.git")


def test_submodules_are_protected_with_their_git_files(project: Path, protect: Protect) -> None:
    repository(project / ".git")
    repository(project / ".git/modules/lib/deep", "[core]\n\tworktree = ../../../../sub/deep\n")
    (project / "sub/deep").mkdir(parents=True)
    (project / "sub/deep/.git").write_text("gitdir: ../../.git/modules/lib/deep\n")
    git = protect()
    assert is_read_only(git, project / "sub/deep/.git")
    assert is_pinned(git, project / "sub")
    assert is_pinned(git, project / ".git/modules")
    assert git.root.entries[f"{project}/.git/modules/lib/deep/config"].kind == "cover"


def test_a_submodule_is_protected_whatever_head_a_command_adds_or_removes(project: Path, protect: Protect) -> None:
    """An earlier session can change every HEAD; the folder would be taken for another, and its hooks left open."""
    repository(project / ".git")
    (repository(project / ".git/modules/gone") / "HEAD").unlink(missing_ok=True)
    repository(project / ".git/modules/lib/deep")
    for name in ("lib/deep", "lib"):
        (project / ".git/modules" / name / "HEAD").write_text("ref: refs/heads/main\n")
    git = protect()
    for name in ("gone", "lib/deep"):
        assert is_read_only(git, project / ".git/modules" / name / "hooks")


@pytest.mark.parametrize("text", [".", "./", "../.git", "../other", "/nonexistent", ""])
def test_a_commondir_that_is_there_ends_nowhere_else(project: Path, protect: Protect, text: str) -> None:
    repository(project / ".git")
    (repository(project / "other") / "commondir").write_text("../.git\n")
    (project / ".git/commondir").write_text(text)
    assert is_read_only(protect(), project / ".git/commondir")


def test_too_many_repositories_are_read_only(project: Path, protect: Protect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_files, "MAX_GIT_FOLDERS", 1)
    monkeypatch.setattr(git_files, "MAX_CLOSED", 1)
    for name in (".git", "b/.git", "c/.git"):
        repository(project / name)
    git = protect(".git", "b/.git", "c/.git")
    assert git.closed == [f"{project}/b/.git"]
    assert git.unprotected == [f"{project}/c/.git"]
    assert is_read_only(git, project / "b/.git")
    assert is_pinned(git, project / "b")


@pytest.mark.parametrize("name", ["worktrees", "modules"])
def test_too_many_folders_in_a_repository_are_read_only(project: Path, protect: Protect, name: str) -> None:
    """A command can make them, so that others are not looked at."""
    kept = repository(repository(project / ".git") / name / "kept")
    for number in range(max(git_files.MAX_WORKTREES, git_files.MAX_GIT_FOLDERS * 4)):
        (kept.parent / f"{number}").mkdir()
    git = protect()
    assert git.closed == [str(kept.parent)]
    assert is_read_only(git, kept.parent)


def test_what_cannot_be_read_as_configuration_is_read_only(project: Path, protect: Protect) -> None:
    repository(project / ".git")
    (project / ".git/config").unlink()
    os.mkfifo(project / ".git/config")
    git = protect()
    assert is_read_only(git, project / ".git/config")
    with pytest.raises(OSError, match="plain file"):
        read_file(f"{project}/.git/config")


def test_a_placeholder_that_cannot_be_made_is_an_error(
    project: Path, protect: Protect, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(project / ".git")

    def full(path: str, content: bytes, mode: int, folder: int | None = None) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(git_files, "write_new", full)
    with pytest.raises(HostError, match="No space left"):
        protect()


@pytest.mark.parametrize("name", ["config", "config.worktree", "../.git"])
def test_no_copy_is_made_through_a_link(project: Path, protect: Protect, name: str) -> None:
    """An earlier session made the repository, and the link."""
    secret = project.parent / "secret"
    secret.mkdir()
    (secret / "config").write_text("CANARY")
    link = Path(os.path.normpath(repository(project / "new/.git") / name))
    link.rename(project / "away") if link.exists() else None
    link.symlink_to(secret if name == "../.git" else secret / "config")
    git = protect("new/.git")
    assert not any(b"CANARY" in each.base for each in git.copied)
    assert os.listdir(secret) == ["config"]
    assert git.root.entries[str(link)].kind == "cover"


def test_what_a_linked_configuration_names_is_protected(project: Path, protect: Protect) -> None:
    config = repository(project / ".git") / "config"
    config.unlink()
    (project / "shared").write_text("[core]\n\thooksPath = my\n")
    (project / "my").mkdir()
    config.symlink_to("../shared")
    git = protect()
    assert is_read_only(git, project / "my")
    assert is_read_only(git, project / "shared")


@pytest.mark.parametrize("name", ["worktrees", "modules"])
def test_nothing_is_made_where_a_link_leads(project: Path, protect: Protect, name: str) -> None:
    other = repository(project.parent / "other/.git")
    before = sorted(os.listdir(other))
    (repository(project / ".git") / name).symlink_to(other.parent)
    git = protect()
    assert sorted(os.listdir(other)) == before
    assert git.root.entries[f"{project}/.git/{name}"].kind == "cover"


def test_a_configuration_that_a_rule_denies_is_not_copied(project: Path, protect: Protect) -> None:
    repository(project / ".git")
    git = protect(denied=(f"{project}/.git/config",))
    assert [each.path for each in git.copied] == [f"{project}/.git/config.worktree"]
    assert is_read_only(git, project / ".git/config")


@pytest.mark.parametrize("name", ["b", ".git/modules", ".git/modules/a", ".git/worktrees", ".git/worktrees/a", ".git"])
def test_a_folder_without_rights_is_read_only(
    project: Path, protect: Protect, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repository(project / ".git")
    for folder in ("b", ".git/modules/a", ".git/worktrees/a"):
        (project / folder).mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda path, mode: path != f"{project}/{name}")
    git = protect(".git", "b")
    assert f"{project}/{name}" in git.closed
    assert is_read_only(git, project / name)
