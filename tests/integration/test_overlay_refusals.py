"""What an overlay refuses: protected names that nobody named, folders that cannot have one, rules that open it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_closed_files import put
from tests.integration.test_overlays import GIT, listed, project, sh, snapshot

__all__ = ["project"]

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]


def test_protected_files_stay_protected_inside(netsandbox: Any, project: Path) -> None:
    home = netsandbox.home()
    put(home, "work/.git/hooks/pre-commit", "true")
    before = snapshot(project)
    run = sh(
        netsandbox,
        "echo planted > .git/hooks/pre-commit; echo planted > .git/hooks/new; echo planted > .vscode/settings.json;"
        "rm -rf .vscode; mv .vscode v; mv .git g; rm -rf .git/hooks; ls -d .git .vscode .git/hooks",
    )
    assert run.stdout == ".git\n.git/hooks\n.vscode\n", run.stderr
    netsandbox("apply", "fix", "--force")
    kept = {name: now for name, now in snapshot(project).items() if name.startswith((".vscode", ".git/hooks"))}
    assert kept == {name: was for name, was in before.items() if name.startswith((".vscode", ".git/hooks"))}


@pytest.mark.parametrize(
    "name", [".envrc", ".claude/settings.json", ".husky/pre-commit", "nested/.git/hooks/pre-commit"]
)
def test_a_new_protected_file_must_be_named(netsandbox: Any, project: Path, name: str) -> None:
    sh(netsandbox, f"mkdir -p $(dirname {name}); echo planted > {name}; echo x > x")
    run = netsandbox("apply", "fix")
    assert run.returncode == 1
    assert "name each" in run.stderr
    assert (project / "x").exists()
    assert not (project / name).exists()
    for wide in (".", name.partition("/")[0] if name.startswith("nested") else "."):
        netsandbox("apply", "fix", wide, "--force")
        assert not (project / name).exists()
    assert netsandbox("apply", "fix", name).returncode == 0
    assert (project / name).read_text() == "planted\n"


def test_a_link_does_not_lead_round_a_protected_name(netsandbox: Any, project: Path) -> None:
    sh(netsandbox, "mkdir evil; echo planted > evil/settings.json; ln -s evil .claude; cat .claude/settings.json")
    assert netsandbox("apply", "fix").returncode == 1
    assert (project / "evil/settings.json").exists()
    assert not (project / ".claude").is_symlink()
    assert netsandbox("apply", "fix", ".claude").returncode == 0
    assert (project / ".claude/settings.json").read_text() == "planted\n"


@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_what_git_is_told_to_run_must_be_named_in_every_mode(netsandbox: Any, project: Path, mode: str) -> None:
    """In the last two nothing is read-only inside, so `apply` alone protects it."""
    home = netsandbox.home()
    for key, value in (("core.hooksPath", "tools/hooks"), ("include.path", "../inc/git")):
        assert home.plainly(["git", "config", key, value]).returncode == 0
    script = (
        "mkdir -p tools/hooks inc; echo planted > tools/hooks/pre-commit; echo planted > inc/git; echo n > inc/other"
    )
    run = sh(netsandbox, script, "--files", mode)
    assert run.returncode == 0, run.stderr
    done = netsandbox("apply", "fix")
    assert (done.returncode, "inc/git, tools/hooks" in done.stderr) == (1, True), done.stderr
    assert (project / "inc/other").read_text() == "n\n"
    assert not (project / "inc/git").exists()
    assert not (project / "tools/hooks").exists()
    assert netsandbox("apply", "fix", "tools/hooks", "inc/git").returncode == 0
    assert (project / "tools/hooks/pre-commit").read_text() == "planted\n"


def test_a_repository_outside_of_the_overlay_is_read_only(netsandbox: Any, project: Path) -> None:
    home = netsandbox.home()
    tree = home.path / "tree"
    assert home.plainly(["git", "worktree", "add", "-q", str(tree)]).returncode == 0
    run = sh(netsandbox, f"echo more >> a; git diff --stat; {GIT} commit -qam second && echo committed", cwd=tree)
    assert "1 insertion" in run.stdout
    assert "committed" not in run.stdout
    assert home.plainly(["git", "log", "--all", "--format=%s"]).stdout == "first\n"
    assert netsandbox("apply", "fix").returncode == 0
    assert (tree / "a").read_text() == "one\nmore\n"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--overlay=gone", "is not a folder"),
        ("--overlay=/usr", "is not in the project"),
        ("--overlay=..", "not in the project"),
    ],
)
def test_a_folder_that_cannot_be_overlaid_is_an_error(
    netsandbox: Any, project: Path, option: str, message: str
) -> None:
    run = netsandbox("run", option, "--", "touch", "canary")
    assert run.returncode == 2
    assert message in run.stderr
    assert not (project / "canary").exists()


def test_a_home_is_no_project_to_overlay(netsandbox: Any) -> None:
    home = netsandbox.home()
    run = netsandbox("run", "--overlay", "--", "true", cwd=home.path)
    assert run.returncode == 2
    assert "leave it out" in run.stderr


def test_without_overlayfs_the_error_names_the_option(netsandbox: Any, project: Path) -> None:
    """The state home on a file system that takes no upper layer: overlayfs itself."""
    if os.getuid() != 0:
        pytest.skip("only root mounts")
    home = netsandbox.home()
    place = home.path / "layers"
    for name in ("lower", "upper", "work", "state"):
        (place / name).mkdir(parents=True)
    options = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, place / "state"], check=True)
    try:
        os.chown(place / "state", home.identity.uid, home.identity.gid)
        run = sh(netsandbox, "touch canary", env={"XDG_STATE_HOME": str(place / "state")})
    finally:
        subprocess.run(["umount", place / "state"], check=True)
    assert run.returncode == 1
    assert "leave out --overlay" in run.stderr
    assert not (project / "canary").exists()


def test_unknown_names_are_errors(netsandbox: Any, project: Path) -> None:
    sh(netsandbox, "echo x > x")
    for command in (("changes", "nobody"), ("apply", "nobody"), ("discard", "nobody", "--yes"), ("changes", "../fix")):
        run = netsandbox(*command)
        assert run.returncode == 2
        assert "choose one of fix" in run.stderr
    assert "has no changes" in netsandbox("apply", "fix", "y").stderr
    assert "is not in" in netsandbox("apply", "fix", "../x").stderr
    assert listed(netsandbox) == {"x": "added"}


def test_deny_rules_hold_in_an_overlay(netsandbox: Any, project: Path) -> None:
    put(netsandbox.home(), "work/secret/key", "canary")
    run = sh(netsandbox, "cat secret/key; echo x > src/b; cat a", "--deny-read", "secret", "--deny-write", "src")
    assert "canary" not in run.stdout
    assert run.stdout == "one\n"
    assert (project / "src/b").read_text() == "two\n"
    assert "src/b" not in run.stdout
    assert netsandbox("changes", "fix").returncode == 2


def test_a_rule_that_opens_the_project_does_not_bypass_the_overlay(netsandbox: Any, project: Path) -> None:
    sh(netsandbox, "echo x > x; echo x > src/x", "--allow-write", ".", "--allow-write", "src")
    assert not (project / "x").exists()
    assert not (project / "src/x").exists()
    assert set(listed(netsandbox)) == {"x", "src/x"}
