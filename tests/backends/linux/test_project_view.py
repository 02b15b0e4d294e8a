"""What a session in the mode `project` sees, from a made-up home; tests/integration/test_closed_files.py runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netsandbox.backends.linux.project_view import ProjectView
from netsandbox.backends.linux.session_root import DENIED
from netsandbox.policy.file_rules import FileRules, PathRule
from netsandbox.policy.shown_files import SHELL_FILES, SHELL_FOLDERS
from netsandbox.runtime.project import Project
from netsandbox.runtime.protection import OwnPaths
from netsandbox.runtime.written_folders import is_written
from tests.rig.views import Build, build, home

__all__ = ["build", "home"]


def test_the_home_is_ours_and_the_project_is_the_hosts(home: Path, build: Build) -> None:
    root, _ = build()
    assert root.entries[str(home)].source.startswith(f"{home}/state/homes/")
    assert root.entries[f"{home}/app"].source == f"{home}/app"
    assert root.entries[f"{home}/app"].writable


def test_existing_toolchains_and_settings_are_shown_read_only(home: Path, build: Build) -> None:
    for name in (".nvm", ".cargo/bin", ".config/git", ".ssh", ".config/gh"):
        (home / name).mkdir(parents=True)
    for name in (".gitconfig", ".config/git/config", ".config/git/credentials", ".cargo/credentials"):
        (home / name).write_text("")
    root, _ = build()
    shown = {path.removeprefix(f"{home}/") for path in root.entries if path.startswith(f"{home}/")}
    shown -= {*SHELL_FILES, *SHELL_FOLDERS}
    assert shown == {"app", ".nvm", ".cargo/bin", ".gitconfig", ".config/git/config"}
    assert not any(root.entries[f"{home}/{name}"].writable for name in shown - {"app"})


@pytest.mark.parametrize("value", ["{home}", "/", "{home}/app", "/tmp", "relative", "/dev"])
def test_a_variable_that_names_too_much_shows_nothing(home: Path, build: Build, value: str) -> None:
    plain, _ = build()
    moved, _ = build(NVM_DIR=value.format(home=home), PATH=value.format(home=home))
    assert set(moved.entries) == set(plain.entries)


@pytest.mark.parametrize("name", [".gem", ".config", ".ssh/bin", ".docker"])
def test_a_variable_that_names_the_place_of_a_secret_shows_nothing(home: Path, build: Build, name: str) -> None:
    (home / name).mkdir(parents=True)
    root, _ = build(GEM_HOME=f"{home}/{name}", PATH=f"{home}/{name}")
    assert f"{home}/{name}" not in root.entries


def test_a_moved_toolchain_and_the_base_of_an_environment_are_shown(home: Path, build: Build) -> None:
    base, tree = home / "pythons/3.11/bin", home / "envs/one"
    (tree / "bin").mkdir(parents=True)
    base.mkdir(parents=True)
    (tree / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3.11\n")
    root, _ = build(PATH=f"{tree}/bin:/usr/bin")
    assert f"{home}/envs/one" in root.entries
    assert f"{home}/pythons/3.11" in root.entries


def test_a_link_among_programs_shows_the_tree_that_it_leads_to(home: Path, build: Build) -> None:
    (home / ".local/bin").mkdir(parents=True)
    (home / "tools/x/bin").mkdir(parents=True)
    (home / "tools/x/bin/run").write_text("")
    (home / "tools/x/bin/run").chmod(0o755)
    (home / ".local/bin/run").symlink_to("../../tools/x/bin/run")
    root, _ = build(PATH=f"{home}/.local/bin")
    assert root.entries[f"{home}/.local/bin"].source == f"{home}/.local/bin"
    assert f"{home}/tools/x" in root.entries
    assert f"{home}/tools" not in root.entries


def test_our_files_in_the_project_are_hidden_or_read_only_and_cannot_be_moved(home: Path, build: Build) -> None:
    for name in ("app/a/b/state", "app/c/venv"):
        (home / name).mkdir(parents=True)
    root, _ = build(own=OwnPaths((f"{home}/app/a/b/state",), (f"{home}/app/c/venv", "/elsewhere")))
    assert root.entries[f"{home}/app/a/b/state"].kind == "tmpfs"
    assert not root.entries[f"{home}/app/c/venv"].writable
    for pinned in ("app/a", "app/a/b", "app/c"):
        assert root.entries[f"{home}/{pinned}"].writable
    assert "/elsewhere" not in root.entries


def test_a_rule_does_not_open_our_files(home: Path, build: Build) -> None:
    (home / "app/venv").mkdir()
    rules = FileRules(allow_write=(PathRule(f"{home}/app/venv", "--rw"),))
    root, _ = build(rules, OwnPaths((), (f"{home}/app/venv",)))
    assert not root.entries[f"{home}/app/venv"].writable


def test_a_moved_xdg_folder_outside_of_the_home_is_private(home: Path, build: Build, tmp_path: Path) -> None:
    other = Path(os.path.realpath(tmp_path)) / "cache"
    root, _ = build(XDG_CACHE_HOME=str(other))
    entry = root.entries[str(other)]
    assert entry.writable
    assert entry.source.startswith(f"{home}/state/")


def test_a_working_folder_that_is_gone_makes_no_project(home: Path) -> None:
    view = ProjectView(FileRules(), {}, None, str(home / "state"))
    view.build("true", OwnPaths(), None)
    assert view.project is None


@pytest.mark.parametrize("hidden", [".git/config", ".git"])
def test_a_configuration_of_git_can_be_hidden(home: Path, build: Build, hidden: str) -> None:
    (home / "app/.git").mkdir()
    (home / "app/.git/config").write_text("[a]\n\tb = CANARY\n")
    root, view = build(FileRules(deny_read=(PathRule(f"{home}/app/{hidden}", "--deny-read"),)))
    entry = root.entries[f"{home}/app/{hidden}"]
    assert entry.rank == DENIED
    assert entry.source != f"{home}/app/{hidden}"
    assert view.git is not None
    assert f"{home}/app/.git/config" not in [each.path for each in view.git.copied]


@pytest.mark.parametrize("was_project", [True, False])
@pytest.mark.parametrize("fresh", [True, False])
def test_what_a_session_of_another_project_left_shows_nothing_outside_of_it(
    home: Path, build: Build, was_project: bool, fresh: bool
) -> None:
    tools, private = home / "other/.venv", home / "Documents"
    (tools / "bin").mkdir(parents=True)
    (home / "other/package").mkdir()
    (private / "bin").mkdir(parents=True)
    for path in (private / "letter", home / "other/package/run"):
        path.write_text("")
        path.chmod(0o755)
    if was_project:
        build(FileRules(fresh_home=fresh), working="other")
    (tools / "bin/own").symlink_to("../../package/run")
    (tools / "bin/letter").symlink_to(private / "letter")
    (tools / "pyvenv.cfg").write_text(f"home = {private}/bin\n")
    root, _ = build(PATH=f"{tools}/bin")
    assert (str(private) in root.entries) is not was_project
    assert str(tools) in root.entries
    assert f"{home}/other/package" in root.entries


def test_an_environment_shows_no_secret(home: Path, build: Build) -> None:
    (home / "envs/one/bin").mkdir(parents=True)
    (home / ".ssh/bin").mkdir(parents=True)
    (home / "envs/one/pyvenv.cfg").write_text(f"home = {home}/.ssh/bin\n")
    root, _ = build(PATH=f"{home}/envs/one/bin")
    assert f"{home}/.ssh" not in root.entries


def test_a_zero_byte_in_a_file_of_an_environment_is_no_path(home: Path, build: Build) -> None:
    (home / "envs/one/bin").mkdir(parents=True)
    (home / "envs/one/pyvenv.cfg").write_text("home = /x\0y/bin\n")
    root, _ = build(PATH=f"{home}/envs/one/bin")
    assert f"{home}/envs/one" in root.entries


def test_protected_names_that_are_links_stay_and_so_does_what_they_lead_to(home: Path, build: Build) -> None:
    work = home / "app"
    for name in ("shared/code", "agent"):
        (work / name).mkdir(parents=True)
    (work / "agent/settings.json").write_text("{}")
    for link, target in {".vscode": "shared/code", ".claude": "agent", ".idea": "..", ".envrc": "missing"}.items():
        (work / link).symlink_to(target)
    root, _ = build()
    for name in (".vscode", ".claude", ".idea", ".envrc"):
        assert root.entries[f"{work}/{name}"].kind == "cover", name
    for name in ("shared/code", "agent/settings.json"):
        assert not root.entries[f"{work}/{name}"].writable, name
    assert root.entries[str(work)].writable


@pytest.mark.parametrize("kind", ["text", "folder"])
def test_a_link_among_programs_that_leads_to_no_program_shows_nothing(home: Path, build: Build, kind: str) -> None:
    (home / "bin").mkdir()
    (home / "Documents/inner").mkdir(parents=True)
    (home / "Documents/plan.md").write_text("")
    (home / "bin/x").symlink_to(home / "Documents" / ("plan.md" if kind == "text" else "inner"))
    root, _ = build(PATH=f"{home}/bin")
    assert not any(path.startswith(f"{home}/Documents") for path in root.entries)


def test_the_git_directory_of_a_worktree_is_remembered(home: Path, build: Build) -> None:
    """A session writes it, so a later one follows no link in it that leads elsewhere."""
    git = home / "main/.git"
    for folder in ("objects", "worktrees/app"):
        (git / folder).mkdir(parents=True)
    (home / "app/.git").write_text(f"gitdir: {git}/worktrees/app\n")
    (git / "worktrees/app/gitdir").write_text(f"{home}/app/.git\n")
    _, view = build()
    assert view.project == Project(f"{home}/app", str(git))
    assert is_written(str(git))
    assert is_written(f"{home}/app")
