"""What an earlier session left behind widens nothing for the next one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.integration.test_closed_files import SECRET, WRITES, git_init, own, put

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]


def test_other_worktrees_git_file_opens_no_other_repository(netsandbox: Any) -> None:
    """A `.git` file is the project's own word: it must not bring another repository into the session."""
    home = netsandbox.home()
    victim = home.path / "victim"
    victim.mkdir()
    own(victim, home)
    git_init(home, victim)
    put(home, "victim/.git/description", SECRET)
    put(home, "work/.git", f"gitdir: {victim}/.git\n")
    run = netsandbox("run", "--", "sh", "-c", f"cat {victim}/.git/description; git status; true")
    assert SECRET not in run.stdout


def test_links_left_in_the_private_home_lead_no_mount_elsewhere(netsandbox: Any) -> None:
    """A session replaces the place of a toolchain in its home by a link; the next session mounts it all the same."""
    home = netsandbox.home()
    put(home, ".gitconfig", "[user]\n name = kept\n")
    first = netsandbox("run", "--", "sh", "-c", f"ls {home.path}/.gitconfig; mkdir -p {home.path}/.config")
    assert first.returncode == 0
    inside = next((home.state / "netsandbox/homes").glob("work-*/home"))
    (inside / ".gitconfig").unlink()
    (inside / ".gitconfig").symlink_to("/etc/passwd")
    put(home, ".config/git/config", "[core]\n abbrev = 9\n")
    shutil.rmtree(inside / ".config")
    (inside / ".config").symlink_to("/etc")
    run = netsandbox("run", "--", "cat", f"{home.path}/.gitconfig", f"{home.path}/.config/git/config")
    assert run.stdout == "[user]\n name = kept\n[core]\n abbrev = 9\n", run.stderr


@pytest.mark.parametrize("way", ["program", "path", "virtual environment", "rule"])
def test_what_a_session_wrote_shows_nothing_in_the_next(netsandbox: Any, way: str) -> None:
    """A link or a pyvenv.cfg in the project is an earlier session's word about what is to be shown."""
    home = netsandbox.home()
    plan = put(home, "Documents/bin/plan.md")
    bin_folder = put(home, "work/.venv/bin/x", "").parent
    options, environment = [], {"PATH": f"{bin_folder}:{home.work}/linked:{netsandbox.identity.path}"}
    if way == "program":
        (bin_folder / "tool").symlink_to(plan)
    elif way == "path":
        (home.work / "linked").symlink_to(plan.parent)
    elif way == "virtual environment":
        put(home, "work/.venv/pyvenv.cfg", f"home = {plan.parent}\n")
    else:
        (home.work / "docs").symlink_to(plan.parent)
        options = ["--allow-read", "docs"]
    run = netsandbox("run", *options, "--", "cat", str(plan), env=environment)
    assert run.returncode != 0
    assert SECRET not in run.stdout
    if way == "rule":
        assert "which a command could have made" in run.stderr
        shown = netsandbox("run", "--allow-read", str(plan.parent), "--", "cat", str(plan), env=environment)
        assert shown.stdout == SECRET


@pytest.mark.parametrize("mode", ["project", "readable"])
@pytest.mark.parametrize("opened", ["tools", "tools/bin/", "other project"])
def test_what_a_session_wrote_outside_of_its_project_shows_nothing_in_the_next(
    netsandbox: Any, opened: str, mode: str
) -> None:
    """A folder of `--allow-write`, and the project of another session, are remembered as the project is."""
    home = netsandbox.home()
    put(home, "secret/run.sh", "#!/bin/sh\n").chmod(0o755)
    plan = put(home, "secret/plan.md")
    tools = put(home, "tools/bin/x", "").parent
    plants = f"ln -s {plan.parent}/run.sh {tools}/run; ln -s {plan.parent} {tools}/docs"
    environment = {"PATH": f"{tools}:{netsandbox.identity.path}"}
    if opened == "other project":
        first = netsandbox("run", "--files", mode, "--", "sh", "-c", plants, cwd=tools)
    else:
        rule = ("--allow-write", f"{home.path}/{opened}")
        first = netsandbox("run", "--files", mode, *rule, "--", "sh", "-c", plants)
    assert first.returncode == 0, first.stderr
    assert os.readlink(tools / "docs") == str(plan.parent)
    by_program = netsandbox("run", "--", "cat", str(plan), env=environment)
    by_rule = netsandbox("run", "--allow-read", f"{tools}/docs", "--", "cat", str(plan))
    assert SECRET not in by_program.stdout + by_rule.stdout
    assert "which a command could have made" in by_rule.stderr
    named = netsandbox("run", "--allow-read", str(plan.parent), "--", "cat", str(plan), env=environment)
    assert named.stdout == SECRET


@pytest.mark.parametrize("way", ["TMPDIR", "cache"])
def test_what_a_session_wrote_in_a_folder_of_the_mode_readable_shows_nothing_in_the_next(
    netsandbox: Any, way: str
) -> None:
    home = netsandbox.home()
    plan = put(home, "secret/plan.md")
    folder = put(home, "scratch/x", "").parent
    config = put(home, "cache.toml", f'[filesystem]\ncache = ["{folder}"]\n')
    options = ["--config", str(config)] if way == "cache" else []
    environment = {"TMPDIR": str(folder)} if way == "TMPDIR" else {}
    plants = ("--", "ln", "-s", str(plan.parent), f"{folder}/docs")
    first = netsandbox("run", "--files", "readable", *options, *plants, env=environment)
    assert first.returncode == 0, first.stderr
    by_rule = netsandbox("run", "--allow-read", f"{folder}/docs", "--", "cat", str(plan))
    assert SECRET not in by_rule.stdout
    assert "which a command could have made" in by_rule.stderr
    assert netsandbox("run", "--allow-read", str(plan.parent), "--", "cat", str(plan)).stdout == SECRET


def test_what_a_session_wrote_in_the_hosts_temporary_folder_shows_nothing_in_the_next(
    netsandbox: Any, short_tmp: Path
) -> None:
    with TemporaryDirectory(dir="/dev/shm") as other:  # homes of tests lie in the folder that is shared
        plan = Path(other) / "plan.md"
        plan.write_text(SECRET)
        os.chmod(other, 0o755)
        first = netsandbox("run", "--share-tmp", "--", "ln", "-s", other, f"{short_tmp}/docs")
        assert first.returncode == 0, first.stderr
        by_rule = netsandbox("run", "--allow-read", f"{short_tmp}/docs", "--", "cat", str(plan))
        assert SECRET not in by_rule.stdout
        assert "which a command could have made" in by_rule.stderr
        assert netsandbox("run", "--allow-read", other, "--", "cat", str(plan)).stdout == SECRET


def test_a_planted_git_file_brings_no_other_folder(netsandbox: Any) -> None:
    """The project itself holds the git directory that its `.git` file names, with a `commondir` that names another."""
    home = netsandbox.home()
    plan = put(home, "Documents/plan.md")
    put(home, "work/.git", "gitdir: fake/worktrees/x\n")
    put(home, "work/fake/worktrees/x/gitdir", f"{home.work}/.git\n")
    put(home, "work/fake/worktrees/x/commondir", f"{plan.parent}\n")
    run = netsandbox("run", "--", "sh", "-c", f"cat {plan}; {WRITES}", "sh", str(plan))
    assert SECRET not in run.stdout
    assert plan.read_text() == SECRET


def test_a_nested_repository_cannot_widen_its_project_to_the_one_around_it(netsandbox: Any) -> None:
    home = netsandbox.home()
    git_init(home, home.work)
    outer = put(home, "work/outer.txt")
    put(home, "work/vendor/.git", "gitdir: ../.git\n")
    run = netsandbox("run", "--", "sh", "-c", f"cat {outer}; {WRITES}", "sh", str(outer), cwd=home.work / "vendor")
    assert SECRET not in run.stdout
    assert outer.read_text() == SECRET


@pytest.mark.parametrize("rule", ["allow_read", "allow_write"])
def test_what_a_file_showed_is_not_an_empty_file_in_a_session_without_it(netsandbox: Any, rule: str) -> None:
    home = netsandbox.home()
    shown = put(home, "data/plan", "content")
    config = put(home, "rules.toml", f'[filesystem]\n{rule} = ["{shown}"]\n')
    with_it = netsandbox("run", "--config", str(config), "--", "cat", str(shown))
    assert with_it.stdout == "content", with_it.stderr
    without = netsandbox("run", "--", "sh", "-c", f"cat {shown}; echo $?; echo x > {shown}; echo $?")
    assert without.stdout == "1\n2\n", without.stderr
    assert shown.read_text() == "content"
