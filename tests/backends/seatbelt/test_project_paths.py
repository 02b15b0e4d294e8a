"""What is looked up for a profile: git's files, programs on PATH, our own code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.seatbelt import project_paths
from netsandbox.backends.seatbelt.project_paths import (
    GitPaths,
    own_code,
    programs_on_path,
    repositories_besides,
    split_missing,
)
from netsandbox.paths import PACKAGE


def git(*words: str, at: Path) -> None:
    alone = {"PATH": os.environ["PATH"], "HOME": str(at), "GIT_CONFIG_GLOBAL": os.devnull}
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *words], cwd=at, env=alone, check=True, capture_output=True, timeout=30)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "app"
    made.mkdir(parents=True)
    git("init", "-q", at=made)
    git("commit", "-q", "--allow-empty", "-m", "x", at=made)
    return made


def kept(project: Path, *more: Path) -> set[str]:
    return {"/".join(pair) for pair in GitPaths([str(project), *map(str, more)], str(project.parent)).pairs}


def test_the_configuration_and_hooks_of_a_repository_are_kept_also_where_they_are_missing(project: Path) -> None:
    found = kept(project)
    for name in ("config", "hooks", "commondir", "config.worktree"):
        assert f"{project}/.git/{name}" in found
    assert f"{project}/.git" not in found
    assert not (project / ".git" / "commondir").exists()


def test_a_project_without_a_repository_keeps_nothing_so_that_git_can_make_one(tmp_path: Path) -> None:
    assert kept(tmp_path) == set()


def test_nested_repositories_submodules_and_worktrees_are_kept(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    git("init", "-q", at=other)
    git("commit", "-q", "--allow-empty", "-m", "x", at=other)
    git("submodule", "add", "-q", str(other), "deps/sub", at=project)
    nested = project / "vendor" / "nested"
    nested.mkdir(parents=True)
    git("init", "-q", at=nested)
    git("worktree", "add", "-q", str(project.parent / "tree"), at=project)
    found = kept(project)
    assert f"{nested}/.git/config" in found
    assert f"{project}/.git/modules/deps/sub/config" in found
    assert f"{project}/deps/sub/.git" in found
    assert f"{project}/.git/worktrees/tree/gitdir" in found
    from_tree = kept(project.parent / "tree", project / ".git")
    assert f"{project.parent}/tree/.git" in from_tree
    assert f"{project}/.git/hooks" in from_tree
    assert f"{project}/.git/worktrees/tree/commondir" in from_tree


def test_what_the_configuration_names_is_kept(project: Path) -> None:
    git("config", "core.hooksPath", ".hooks", at=project)
    git("config", "include.path", "../shared.ini", at=project)
    (project / "shared.ini").write_text("[include]\n path = more/deep.ini\n")
    (project.parent / ".gitconfig").write_text("[core]\n hooksPath = .global-hooks\n")
    found = kept(project)
    for name in (".hooks", "shared.ini", "more/deep.ini", ".global-hooks"):
        assert f"{project}/{name}" in found


@pytest.mark.parametrize(
    "content", [b"\xff\xfe[", b"[core\n", b"[include]\n path = \n", b"[include]\n path = config\n"]
)
def test_a_configuration_that_git_does_not_read_names_nothing(project: Path, content: bytes) -> None:
    (project / ".git" / "config").write_bytes(content)
    assert f"{project}/.git/hooks" in kept(project)


def test_mercurial_is_kept_where_it_is_used(tmp_path: Path) -> None:
    (tmp_path / ".hg").mkdir()
    assert kept(tmp_path) == {f"{tmp_path}/.hg/hgrc"}


def test_a_repository_that_a_session_made_is_told_from_those_before(project: Path) -> None:
    before = repositories_besides([str(project)], ())
    assert before == [f"{project}/.git"]
    assert repositories_besides([str(project)], before) == []
    (project / "new").mkdir()
    git("init", "-q", at=project / "new")
    assert repositories_besides([str(project)], before) == [f"{project}/new/.git"]


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6), st.integers(0, 6))
def test_a_path_is_split_after_what_exists(parts: list[str], there: int) -> None:
    path = "/" + "/".join(parts)
    existing = {"/" + "/".join(parts[:number]) for number in range(there + 1)}
    folder, name = split_missing(path, existing.__contains__)
    assert os.path.join(folder, name) == path
    assert name
    assert folder in existing or folder == "/"


def test_programs_on_path_bring_the_tree_that_they_belong_to(tmp_path: Path) -> None:
    home = tmp_path / "home"
    tool = home / "tools" / "node-22"
    (tool / "bin").mkdir(parents=True)
    (tool / "bin" / "node").touch()
    (home / "links").mkdir()
    (home / "links" / "node").symlink_to(tool / "bin" / "node")
    (home / ".ssh" / "bin").mkdir(parents=True)
    (home / "app" / "bin").mkdir(parents=True)
    path = f"{home}/links:{home}/.ssh/bin:{home}/app/bin:{home}/bin:relative:/usr/bin::/bin"
    found = programs_on_path(path, str(home), [str(home / "app")], os.path.realpath)
    assert set(found) == {f"{home}/links", str(tool), f"{home}/bin"}
    assert programs_on_path(f"{home}:{tmp_path}:/:/tmp", str(home), [], os.path.realpath) == ()


def test_our_code_and_a_shared_tree_that_holds_the_interpreter_are_never_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """INV-8."""
    assert any(PACKAGE.startswith(path) for path in own_code())
    monkeypatch.setattr(sys, "base_prefix", "/opt/homebrew/opt/python@3.13")
    assert "/opt/homebrew" in own_code()
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert not set(project_paths.SHARED_TREES) & set(own_code())


@pytest.mark.attack(146)
def test_a_link_in_the_project_brings_no_program_though_its_folder_is_on_path(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "Documents").mkdir(parents=True)
    scripts = home / "app" / "node_modules" / ".bin"
    scripts.mkdir(parents=True)
    (scripts / "tsc").symlink_to(home / "Documents" / "plan.md")
    assert programs_on_path(str(scripts), str(home), [str(home / "app")], os.path.realpath) == ()
    assert programs_on_path(str(scripts), str(home), [], os.path.realpath) == (str(scripts), f"{home}/Documents")
