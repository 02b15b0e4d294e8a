"""The project of a working folder: the nearest repository or workspace, never the home, and never another's word."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from netsandbox.policy.shown_files import REPOSITORY_MARKS, WORKSPACE_MARKS
from netsandbox.runtime import project
from netsandbox.runtime.project import (
    MAX_FOLDERS,
    Project,
    Repositories,
    all_repositories,
    deeper_folders,
    find_project,
    find_repositories,
    new_repositories,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home"
    (folder / "code/app/src/deep").mkdir(parents=True)
    return folder


def found(working: Path, home: Path) -> Project | None:
    return find_project(str(working), str(home))


def test_without_a_repository_the_working_folder_is_the_project(home: Path) -> None:
    assert found(home / "code/app", home) == Project(f"{home}/code/app")


@pytest.mark.parametrize("mark", [*REPOSITORY_MARKS, *WORKSPACE_MARKS])
def test_the_nearest_mark_above_counts(home: Path, mark: str) -> None:
    (home / "code" / mark).mkdir()
    (home / "code/app" / mark).mkdir()
    assert found(home / "code/app/src/deep", home) == Project(f"{home}/code/app")


WORKSPACES = {
    "package.json": '{"workspaces": ["app/*"]}',
    "Cargo.toml": '[workspace]\nmembers = ["app/src"]\n',
    "pyproject.toml": '[tool.uv.workspace]\nmembers = ["app/src"]\n',
}


@pytest.mark.parametrize("manifest", WORKSPACES)
def test_a_workspace_is_the_project_of_its_members(home: Path, manifest: str) -> None:
    (home / "code" / manifest).write_text(WORKSPACES[manifest])
    (home / "code/app/src" / manifest).write_text("")
    assert found(home / "code/app/src/deep", home) == Project(f"{home}/code")
    (home / "code/app/.git").mkdir()  # a repository is nearer
    assert found(home / "code/app/src", home) == Project(f"{home}/code/app")


def test_a_manifest_without_this_member_a_link_and_one_of_the_home_open_nothing(home: Path) -> None:
    (home / "code/package.json").write_text('{"workspaces": ["other/*"]}')
    assert found(home / "code/app/src", home) == Project(f"{home}/code/app/src")
    (home / "package.json").write_text('{"workspaces": ["**"]}')
    (home / "Cargo.toml").write_text("[workspace]\n")
    assert found(home / "code/app/src", home) == Project(f"{home}/code/app/src")
    (home / "code/package.json").unlink()
    (home / "code/package.json").symlink_to(home / "package.json")
    os.mkfifo(home / "code/Cargo.toml")
    assert found(home / "code/app/src", home) == Project(f"{home}/code/app/src")


def test_a_workspace_inside_of_a_repository_leaves_the_repository_the_project(home: Path) -> None:
    (home / "code/.git").mkdir()
    (home / "code/app/pnpm-workspace.yaml").touch()
    assert found(home / "code/app/src", home) == Project(f"{home}/code")


@pytest.mark.parametrize("working", ["", "..", "/"])
def test_the_home_and_what_holds_it_are_no_project(home: Path, working: str) -> None:
    assert found(Path(os.path.normpath(home / working)), home) is None


def test_a_repository_of_the_home_does_not_count(home: Path) -> None:
    (home / ".git").mkdir()
    assert found(home / "code/app", home) == Project(f"{home}/code/app")


def worktree(home: Path, back: str) -> Path:
    git = home / "main/.git/worktrees/tree"
    git.mkdir(parents=True)
    (home / "main/.git/objects").mkdir()
    (git / "commondir").write_text("../..\n")
    (git / "gitdir").write_text(f"{back}\n")
    tree = home / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git}\n")
    return tree


def test_a_worktree_brings_its_common_git_directory(home: Path) -> None:
    tree = worktree(home, f"{home}/tree/.git")
    assert found(tree, home) == Project(str(tree), f"{home}/main/.git")


@pytest.mark.parametrize("back", ["/elsewhere/.git", "", "../tree"])
def test_a_repository_that_does_not_know_the_worktree_is_not_shown(home: Path, back: str) -> None:
    tree = worktree(home, back)
    assert found(tree, home) == Project(str(tree))


def test_a_submodule_belongs_to_the_repository_around_it(home: Path) -> None:
    git = home / "code/.git/modules/app"
    git.mkdir(parents=True)
    (home / "code/app/.git").write_text("gitdir: ../.git/modules/app\n")
    assert found(home / "code/app/src", home) == Project(f"{home}/code/app")  # the repository does not know it
    (git / "config").write_text("[core]\n\tbare = false\n\tworktree = ../../../app\n")
    assert found(home / "code/app/src", home) == Project(f"{home}/code")


def test_a_git_directory_inside_of_the_folder_is_the_folders_own_word(home: Path) -> None:
    git = home / "code/app/fake/worktrees/x"
    git.mkdir(parents=True)
    (home / "code/app/fake/objects").mkdir()
    (home / "code/app/.git").write_text("gitdir: fake/worktrees/x\n")
    (git / "gitdir").write_text(f"{home}/code/app/.git\n")
    (git / "commondir").write_text(f"{home}/other\n")
    assert found(home / "code/app", home) == Project(f"{home}/code/app")


@pytest.mark.parametrize("place", ["other/.git/worktrees-x/tree", "other/tree"])
def test_a_worktree_lies_in_the_worktrees_of_a_repository(home: Path, place: str) -> None:
    git = home / place
    git.mkdir(parents=True)
    (git / "gitdir").write_text(f"{home}/code/app/.git\n")
    (home / "code/app/.git").write_text(f"gitdir: {git}\n")
    assert found(home / "code/app", home) == Project(f"{home}/code/app")


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir:   \n", "nonsense", "gitdir: /nowhere"])
def test_a_broken_git_file_makes_a_plain_project(home: Path, text: str) -> None:
    (home / "code/app/.git").write_text(text)
    assert found(home / "code/app", home) == Project(f"{home}/code/app")


def test_a_git_file_that_is_a_link_or_a_pipe_is_not_read(home: Path) -> None:
    (home / "code/app/.git").symlink_to(home / "other")
    assert found(home / "code/app", home) == Project(f"{home}/code/app")
    os.mkfifo(home / "code/.hg")
    os.mkfifo(home / "other")
    assert found(home / "code/app", home) == Project(f"{home}/code/app")


def test_repositories_are_found_the_nearest_first(home: Path) -> None:
    names = "deep/er/.git near/.git node_modules/x/.git .git/modules/y bare/objects/a/.git bare/refs bare/in/.git"
    for name in names.split():
        (home / "p" / name).mkdir(parents=True)
    (home / "p/bare/HEAD").write_text("")
    (home / "p/file").mkdir()
    (home / "p/file/.git").write_text("gitdir: x\n")
    top = f"{home}/p"
    search = find_repositories(top, 100)
    assert search.found == (
        *(f"{top}/.git", f"{top}/bare", f"{top}/file/.git", f"{top}/near/.git"),
        *(f"{top}/bare/in/.git", f"{top}/deep/er/.git", f"{top}/node_modules/x/.git"),
    )
    assert search.left == ()


def test_the_search_for_repositories_is_bounded_and_follows_no_link(home: Path) -> None:
    for number in range(10):
        (home / f"p/{number}").mkdir(parents=True)
    (home / "p/9/.git").mkdir()
    (home / "p/0/loop").symlink_to(home / "p")
    few, all_ = (find_repositories(f"{home}/p", most) for most in (5, 11))
    beside = (f"{home}/p/9/.git",)  # a folder that is left is asked for its own repository at least
    assert (few.found, len(few.seen), len(few.left)) == (beside, 5, 6)
    assert (all_.found, len(all_.seen), len(all_.left)) == ((f"{home}/p/9/.git",), 11, 0)
    assert find_repositories(f"{home}/missing", 5).found == ()


def test_a_new_repository_is_found_though_the_project_looks_like_one_itself(home: Path) -> None:
    (home / "p").mkdir()
    before = find_repositories(f"{home}/p", 10)
    since = time.time()
    time.sleep(0.05)
    for name in ("objects", "refs", "new/.git"):
        (home / "p" / name).mkdir(parents=True)
    (home / "p/HEAD").write_text("")
    assert new_repositories(before, since, 10).found == (f"{home}/p/new/.git",)


def test_new_repositories_are_found_where_something_changed(home: Path) -> None:
    """In folders that were looked at, in those that were left, and in new ones; an old repository is not new."""
    for name in ("a", "b/c", "old/.git", "z/deep", "z/other/.git"):
        (home / "p" / name).mkdir(parents=True)
    before = find_repositories(f"{home}/p", 4)
    assert f"{home}/p/z" in before.left
    since = time.time()
    time.sleep(0.05)  # the clock of files has ticks
    assert new_repositories(before, since, 10) == Repositories()
    for name in ("a/.git", "b/c/new/x/.git", "old/plain", "z/.git", "bare/objects", "bare/refs"):
        (home / "p" / name).mkdir(parents=True)
    (home / "p/bare/HEAD").write_text("")
    for name in ("z", "b/c/new/x"):
        (home / "p" / name / ".git/config").write_text("")
    names = ("a/.git", "bare", "b/c/new/x/.git", "z/.git")
    assert sorted(new_repositories(before, since, 20).found) == sorted(f"{home}/p/{name}" for name in names)
    cut = new_repositories(before, since, 1)
    assert (cut.found, cut.is_whole) == ((), False)


def large(project: Path, folders: int = 100) -> str:
    """A repository beyond the folders of every launch, and one in an installed package."""
    for number in range(folders):
        (project / f"{number:03}/deep/er").mkdir(parents=True)
    for place in (f"{folders - 1:03}/deep/er/x", "node_modules/y"):
        (project / place / ".git").mkdir(parents=True)
    return f"{project}/{folders - 1:03}/deep/er/x/.git"


def test_the_first_session_searches_a_large_project_and_later_ones_remember(home: Path) -> None:
    deep = large(home / "p")
    kept = f"{home}/kept"
    assert deep not in find_repositories(f"{home}/p", MAX_FOLDERS).found
    for _ in range(2):
        search = all_repositories(f"{home}/p", kept)
        assert deep in search.found
        assert search.is_whole
    (home / "p/000/deep/er/.git").mkdir()
    assert f"{home}/p/000/deep/er/.git" not in all_repositories(f"{home}/p", kept).found
    os.utime(kept, (0, 0))
    assert f"{home}/p/000/deep/er/.git" in all_repositories(f"{home}/p", kept).found
    Path(deep).rmdir()
    assert deep not in all_repositories(f"{home}/p", kept).found


@pytest.mark.parametrize("bound", [("MAX_DEEPER", 150), ("MAX_SECONDS", 0)])
def test_a_project_that_is_too_large_is_not_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch, bound: tuple[str, int]
) -> None:
    large(home / "p")
    monkeypatch.setattr(project, *bound)
    assert [all_repositories(f"{home}/p", f"{home}/kept").is_whole for _ in range(2)] == [False, False]


def test_installed_packages_leave_a_project_whole(home: Path) -> None:
    for number in range(100):
        (home / f"p/node_modules/{number}").mkdir(parents=True)
    search = find_repositories(f"{home}/p", MAX_FOLDERS)
    assert search.is_whole
    assert search.left
    assert all_repositories(f"{home}/p", f"{home}/kept") == search
    assert not (home / "kept").exists()


@pytest.mark.parametrize("content", [b"", b"whole", b"\0\0", b"part\0/a\0/b"])
def test_a_broken_list_of_repositories_stops_nothing(home: Path, content: bytes) -> None:
    large(home / "p")
    (home / "kept").write_bytes(content)
    (home / "kept").chmod(0o600)
    assert all(map(os.path.isabs, all_repositories(f"{home}/p", f"{home}/kept").found))


def test_without_a_place_for_the_list_each_session_searches(home: Path) -> None:
    deep = large(home / "p")
    assert deep in all_repositories(f"{home}/p", f"{home}/none/kept").found
    assert deeper_folders(f"{home}/none/kept") == frozenset()


def test_a_folder_whose_commondir_names_another_is_a_repository(home: Path) -> None:
    (home / "p/new").mkdir(parents=True)
    (home / "p/new/HEAD").write_text("ref: refs/heads/main\n")
    assert find_repositories(f"{home}/p", 10).found == ()
    (home / "p/new/commondir").write_text("../elsewhere\n")
    assert find_repositories(f"{home}/p", 10).found == (f"{home}/p/new",)


@pytest.mark.parametrize("owner", ["own", "other"])
def test_a_folder_of_this_user_without_rights_may_hold_repositories(
    home: Path, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    """A command can take the rights away, and give them back in a later session."""
    (home / "p/locked").mkdir(parents=True)
    scan = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("/locked"):
            raise PermissionError
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    if owner == "other":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert find_repositories(f"{home}/p", 10).found == ((f"{home}/p/locked",) if owner == "own" else ())


def test_a_new_repository_deep_in_a_large_project_is_found(home: Path) -> None:
    large(home / "p")
    kept = f"{home}/kept"
    before = all_repositories(f"{home}/p", kept)
    since = time.time()
    time.sleep(0.05)
    (home / "p/050/deep/er/new/.git").mkdir(parents=True)
    (home / "p/050/deep/er/new/.git/config").write_text("")
    assert new_repositories(before, since, 10).found == ()
    assert new_repositories(before, since, 10, deeper_folders(kept)).found == (f"{home}/p/050/deep/er/new/.git",)


@pytest.mark.parametrize("text", ["gitdir: a\0b\n", "gitdir: \0\n", "\0"])
def test_a_zero_byte_in_a_git_file_stops_nothing(home: Path, text: str) -> None:
    (home / "code/app/.git").write_text(text)
    assert found(home / "code/app", home) == Project(f"{home}/code/app")


@pytest.mark.parametrize("name", [".ssh", ".ssh/keys", ".config", ".config/gh", ".config/tool", ".npm", ".local/share"])
def test_folders_of_settings_and_secrets_in_the_home_are_no_projects(home: Path, name: str) -> None:
    (home / name).mkdir(parents=True)
    assert found(home / name, home) is None


@pytest.mark.parametrize("name", [".ssh", ".config", ".aws/x"])
def test_a_repository_at_a_place_of_secrets_is_no_project(home: Path, name: str) -> None:
    (home / name / ".git").mkdir(parents=True)
    assert found(home / name, home) is None


def test_a_repository_in_a_folder_of_settings_is_a_project(home: Path) -> None:
    (home / ".dotfiles/.git").mkdir(parents=True)
    assert found(home / ".dotfiles", home) == Project(f"{home}/.dotfiles")


@pytest.mark.parametrize(
    ("folder", "is_project"),
    [("/usr/lib", False), ("/etc/ssl", False), ("/var/lib/x", False), ("/usr/src/app", True), ("/opt/app", True)],
)
def test_folders_of_the_system_are_no_projects(home: Path, folder: str, *, is_project: bool) -> None:
    assert (find_project(folder, str(home)) is not None) is is_project
