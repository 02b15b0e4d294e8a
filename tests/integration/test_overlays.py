"""`run --overlay`: nothing that a session does to its project is on the host before `apply`, and then only what may be.

Each test looks at the host's files themselves; what must not arrive is a canary.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import stat
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_closed_files import git_init, own, put
from tests.rig.localhost import eventually

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]
GIT = "git -c user.name=A -c user.email=a@example.com"


@pytest.fixture
def project(netsandbox: Any) -> Path:
    home = netsandbox.home()
    git_init(home, home.work)
    put(home, "work/a", "one\n")
    put(home, "work/src/b", "two\n")
    put(home, "work/.vscode/settings.json", "{}")
    done = home.plainly(["sh", "-c", f"{GIT} add -A && {GIT} commit -qm first"])
    assert done.returncode == 0, done.stderr
    return Path(home.work)


def sh(netsandbox: Any, script: str, *options: str, name: str = "fix", **more: Any) -> Any:
    return netsandbox("run", "--overlay", "--name", name, *options, "--", "sh", "-c", script, **more)


def listed(netsandbox: Any, name: str = "fix") -> dict[str, str]:
    run = netsandbox("changes", name, "--json")
    assert run.returncode == 0, run.stderr
    return {row["path"]: row["change"] for row in json.loads(run.stdout)["changes"]}


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


WORK = "echo more >> a; rm src/b; mkdir -p new/deep; echo n > new/deep/file; ln -s ../a new/link; chmod 755 a; cat a"


def test_nothing_reaches_the_host_before_it_is_applied(netsandbox: Any, project: Path) -> None:
    before = snapshot(project)
    run = sh(netsandbox, WORK)
    assert run.stdout == "one\nmore\n", run.stderr
    assert "6 changes of ~/work kept; see `netsandbox changes fix`" in run.stderr
    assert snapshot(project) == before
    assert listed(netsandbox) == {
        "a": "changed",
        "new": "added",
        "new/deep": "added",
        "new/deep/file": "added",
        "new/link": "added",
        "src/b": "removed",
    }
    assert "+more" in netsandbox("changes", "fix", "--diff").stdout.splitlines()
    done = netsandbox("apply", "fix")
    assert done.returncode == 0, done.stderr
    assert (project / "a").read_text() == "one\nmore\n"
    assert stat.S_IMODE((project / "a").stat().st_mode) == 0o755
    assert (project / "a").stat().st_uid == netsandbox.home().identity.uid
    assert (project / "new/deep/file").read_text() == "n\n"
    assert os.readlink(project / "new/link") == "../a"
    assert not (project / "src/b").exists()
    assert netsandbox("changes", "fix").returncode == 2
    assert list((netsandbox.home().state / "netsandbox/overlays").iterdir()) == []


@pytest.mark.parametrize("mode", ["readable", "open"])
def test_the_other_modes_of_files_have_overlays_too(netsandbox: Any, project: Path, mode: str) -> None:
    before = snapshot(project)
    run = sh(netsandbox, f"cd ..; {WORK}", "--files", mode, cwd=project / "src", name="other")
    assert run.stdout == "one\nmore\n", run.stderr
    assert snapshot(project) == before
    assert netsandbox("apply", "other").returncode == 0
    assert (project / "new/deep/file").read_text() == "n\n"


def test_discard_throws_the_changes_away(netsandbox: Any, project: Path) -> None:
    before = snapshot(project)
    sh(netsandbox, "echo x > x; mkdir -m 0 closed")
    assert netsandbox("discard", "fix").returncode == 1
    assert listed(netsandbox)
    assert netsandbox("discard", "fix", "--yes").returncode == 0
    assert "no session keeps changes" in netsandbox("changes").stderr
    assert snapshot(project) == before


def test_a_session_that_changes_nothing_keeps_nothing(netsandbox: Any, project: Path) -> None:
    run = sh(netsandbox, "cat a; echo x > x; rm x; git status --short")
    assert run.stdout == "one\n"
    assert "kept" not in run.stderr
    assert netsandbox("changes", "fix").returncode == 2


def test_two_sessions_in_one_folder_do_not_see_each_other(netsandbox: Any, project: Path) -> None:
    """Without a name of the user's the second one gets another."""
    script = "ls; echo $0 > mine-$1; echo $1 >> a; read line; cat a"
    spawned = [
        netsandbox.spawn("run", "--overlay", "--", "sh", "-c", script, "x", str(number), stdin=subprocess.PIPE)
        for number in range(2)
    ]
    overlays = netsandbox.home().state / "netsandbox/overlays"
    eventually(lambda: len(list(overlays.glob("*/data/mine-*"))) == 2)
    outputs = []
    for each in spawned:
        outputs.append(each.process.communicate(b"go\n", 30)[0].decode())
    assert [output.splitlines()[-2:] for output in outputs] == [["one", "0"], ["one", "1"]]
    assert not any("mine" in output for output in outputs)
    assert not list(project.glob("mine-*"))
    names = [row["name"] for row in json.loads(netsandbox("changes", "--json").stdout)["overlays"]]
    assert names == ["work", "work-2"]
    third = netsandbox("run", "--overlay", "--", "sh", "-c", "ls; echo 3 > three")
    assert "mine" not in third.stdout  # a kept overlay is continued only by its name
    assert "netsandbox changes work-3" in third.stderr


def test_the_only_overlay_of_a_folder_needs_no_name(netsandbox: Any, project: Path) -> None:
    """E16. The twin: with two, or elsewhere, nothing is guessed."""
    sh(netsandbox, "echo 2 > src/b")
    assert "+2" in netsandbox("changes", "--diff", cwd=project / "src").stdout
    elsewhere = netsandbox("apply", cwd=project.parent)
    assert (elsewhere.returncode, "`netsandbox changes` lists them" in elsewhere.stderr) == (2, True)
    sh(netsandbox, "echo three > src/b", name="other")
    for words in (["changes", "--diff"], ["apply"], ["discard", "--yes"]):
        run = netsandbox(*words)
        assert (run.returncode, "it is one of fix, other" in run.stderr) == (2, True)
    assert netsandbox("discard", "--yes", "other").returncode == 0
    assert netsandbox("apply").returncode == 0
    assert (project / "src/b").read_text() == "2\n"
    sh(netsandbox, "echo four > src/b")
    assert netsandbox("discard", "--yes").returncode == 0
    assert json.loads(netsandbox("changes", "--json").stdout)["overlays"] == []


def test_a_session_continues_with_the_changes_of_its_name(netsandbox: Any, project: Path) -> None:
    sh(netsandbox, "echo 1 > x")
    run = sh(netsandbox, "cat x; echo 2 > y")
    assert run.stdout == "1\n"
    assert set(listed(netsandbox)) == {"x", "y"}
    other = put(netsandbox.home(), "other/file").parent
    wrong = sh(netsandbox, "true", cwd=other)
    assert wrong.returncode == 2
    assert "keeps changes of" in wrong.stderr


def test_a_running_session_is_listed_but_not_applied(netsandbox: Any, project: Path) -> None:
    spawned = netsandbox.spawn(
        "run",
        "--overlay",
        "--name",
        "fix",
        "--",
        "sh",
        "-c",
        "echo x > x; echo ready; read line",
        stdin=subprocess.PIPE,
    )
    assert spawned.process.stdout.readline() == b"ready\n"
    assert listed(netsandbox) == {"x": "added"}
    assert json.loads(netsandbox("changes", "fix", "--json").stdout)["running"] is True
    for command in (("apply", "fix"), ("discard", "fix", "--yes")):
        run = netsandbox(*command)
        assert run.returncode == 1
        assert "netsandbox stop fix" in run.stderr
    spawned.process.communicate(b"go\n", 30)
    assert not (project / "x").exists()
    assert netsandbox("apply", "fix").returncode == 0
    assert (project / "x").exists()


def test_an_overlay_of_a_folder_leaves_the_rest_of_the_project(netsandbox: Any, project: Path) -> None:
    run = netsandbox(
        "run", "--overlay=src", "--name", "fix", "--", "sh", "-c", "echo x > src/b; echo x > a; cat src/b a"
    )
    assert run.stdout == "x\nx\n", run.stderr
    assert (project / "a").read_text() == "x\n"
    assert (project / "src/b").read_text() == "two\n"
    assert listed(netsandbox) == {"b": "changed"}


def test_what_the_host_changed_meanwhile_is_refused_whole(netsandbox: Any, project: Path) -> None:
    sh(netsandbox, "echo session >> a; echo session > x; rm src/b")
    (project / "a").write_text("host\n")
    run = netsandbox("apply", "fix")
    assert run.returncode == 1
    assert "nothing was applied: 'a' changed on the host" in run.stderr
    assert (project / "a").read_text() == "host\n"
    assert not (project / "x").exists()
    assert (project / "src/b").exists()
    assert "changed on the host" in netsandbox("changes", "fix").stdout
    assert netsandbox("apply", "fix", "x").returncode == 0
    assert (project / "x").read_text() == "session\n"
    assert netsandbox("apply", "fix", "--force").returncode == 0
    assert (project / "a").read_text() == "one\nsession\n"
    assert not (project / "src/b").exists()


def test_what_the_host_removed_or_made_meanwhile_is_refused(netsandbox: Any, project: Path) -> None:
    sh(netsandbox, "echo session >> src/b; echo session > x")
    (project / "src/b").unlink()
    assert "was removed on the host" in netsandbox("apply", "fix").stderr
    own(project / "src", netsandbox.home())
    (project / "x").write_text("host")
    assert "'x' changed on the host" in netsandbox("apply", "fix", "x").stderr
    assert (project / "x").read_text() == "host"


def test_a_folder_that_became_a_link_leads_nowhere(netsandbox: Any, project: Path) -> None:
    sh(netsandbox, "echo session > src/b; echo session > src/planted")
    outside = put(netsandbox.home(), "outside/b", "canary").parent
    shutil.rmtree(project / "src")
    (project / "src").symlink_to(outside)
    for options in ((), ("src/planted",)):
        run = netsandbox("apply", "fix", *options)
        assert run.returncode == 1
        assert "nothing was applied" in run.stderr
    assert [path.name for path in outside.iterdir()] == ["b"]
    assert netsandbox("apply", "fix", "--force").returncode == 0  # the link is replaced, not followed
    assert not (project / "src").is_symlink()
    assert (outside / "b").read_text() == "canary"
    assert [path.name for path in outside.iterdir()] == ["b"]


def test_a_link_of_the_session_is_applied_as_a_link(netsandbox: Any, project: Path) -> None:
    """The session replaces a folder by a link that leads out, and writes below it: that stays inside."""
    outside = put(netsandbox.home(), "outside/b", "canary").parent
    sh(netsandbox, f"rm -r src; ln -s {outside} src; echo planted > src/b; ln -s {outside}/b link; echo x >> link")
    assert listed(netsandbox)["src"] == "changed"
    assert f"src -> {outside}" in netsandbox("changes", "fix").stdout
    assert netsandbox("apply", "fix").returncode == 0
    assert (project / "src").is_symlink()
    assert (outside / "b").read_text() == "canary"


def test_git_works_inside_and_apply_brings_the_commit_out(netsandbox: Any, project: Path) -> None:
    home = netsandbox.home()
    run = sh(
        netsandbox,
        f"{GIT} checkout -qb topic && echo more >> a && {GIT} commit -qam second && git config alias.x '!touch planted'"
        " && git remote add up https://example.com/x && git config branch.topic.remote up"
        " && git config branch.topic.merge refs/heads/topic && git log --format=%s && git status --short",
    )
    assert run.stdout == "second\nfirst\n", run.stderr
    assert home.plainly(["git", "log", "--all", "--format=%s"]).stdout == "first\n"
    applied = netsandbox("apply", "fix")
    assert "does not get alias.x" in applied.stderr, applied.stderr
    assert home.plainly(["git", "log", "--format=%s"]).stdout == "second\nfirst\n"
    assert home.plainly(["git", "status", "--short", "--branch"]).stdout == "## topic...up/topic [gone]\n"
    assert home.plainly(["git", "fsck"]).returncode == 0
    assert home.plainly(["git", "config", "alias.x"]).stdout == ""


def test_git_does_not_prune_worktrees_of_others(netsandbox: Any, project: Path) -> None:
    home = netsandbox.home()
    assert home.plainly(["git", "worktree", "add", "-q", str(home.path / "tree")]).returncode == 0
    sh(netsandbox, "git worktree prune; git gc -q; rm -rf .git/worktrees; echo x > x")
    assert netsandbox("apply", "fix").returncode in (0, 1)
    assert home.plainly(["git", "status"], cwd=home.path / "tree").returncode == 0


def test_a_killed_session_keeps_its_changes(netsandbox: Any, project: Path) -> None:
    spawned = netsandbox.spawn(
        "run", "--overlay", "--name", "fix", "--", "sh", "-c", "echo x > x; echo ready; read line"
    )
    assert spawned.process.stdout.readline() == b"ready\n"
    os.kill(spawned.pid, signal.SIGKILL)
    spawned.process.wait(30)
    assert listed(netsandbox) == {"x": "added"}
    assert "fix ended and kept changes" in netsandbox("ps").stderr
    assert netsandbox("apply", "fix").returncode == 0
    assert (project / "x").read_text() == "x\n"


def test_npm_installs_in_an_overlay(netsandbox: Any, project: Path) -> None:
    """From archives in the project, and again over what the host has: npm moves and replaces folders."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    home = netsandbox.home()
    for version in ("1.0.0", "2.0.0"):
        for name in ("left", "right"):
            archive(project / f"archives/{name}-{version}.tgz", name, version)
    npm = "npm install --offline --no-audit --no-fund --loglevel=error --no-update-notifier"
    package = {"name": "shop", "version": "1.0.0", "private": True}

    def wants(version: str) -> str:
        names = {name: f"file:archives/{name}-{version}.tgz" for name in ("left", "right")}
        return json.dumps({**package, "dependencies": names})

    put(home, "work/package.json", wants("1.0.0"))
    run = sh(netsandbox, npm, timeout=120)
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert not (project / "node_modules").exists()
    assert netsandbox("apply", "fix").returncode == 0
    assert json.loads((project / "node_modules/left/package.json").read_text())["version"] == "1.0.0"
    put(home, "work/package.json", wants("2.0.0"))
    run = sh(netsandbox, f"{npm} && rm -rf node_modules/right && {npm}", timeout=120)
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert json.loads((project / "node_modules/left/package.json").read_text())["version"] == "1.0.0"
    done = netsandbox("apply", "fix")
    assert done.returncode == 0, done.stderr
    for name in ("left", "right"):
        found = json.loads((project / f"node_modules/{name}/package.json").read_text())
        assert found["version"] == "2.0.0"
    assert not list(project.glob("node_modules/.[lr]*-*"))


def archive(path: Path, name: str, version: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as file:
        for inner, text in (
            ("package.json", json.dumps({"name": name, "version": version})),
            ("lib/deep/index.js", version),
        ):
            entry = tarfile.TarInfo(f"package/{inner}")
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))


def test_a_dry_run_names_the_folder(netsandbox: Any, project: Path) -> None:
    for mode in ("project", "open"):
        run = netsandbox("run", "--dry-run", "--files", mode, "--overlay=src", "--", "true")
        assert f"overlay    {project}/src (the command changes a copy, which is kept)" in run.stdout
    assert "overlay  " not in netsandbox("run", "--dry-run", "--", "true").stdout
    assert not (netsandbox.home().state / "netsandbox/overlays").exists()
