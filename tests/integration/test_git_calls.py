"""Everyday calls of git in a session do as on the host: the same exit status, and the same repository after each."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netsandbox.backends.linux.git_files import MAX_WORKTREES
from tests.rig.account import Identity
from tests.rig.command import CommandLine, Home
from tests.rig.world import need

pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.ordinary_user,
]

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "c",
    "GIT_COMMITTER_EMAIL": "c@example.com",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
    "GIT_CONFIG_KEY_1": "init.defaultBranch",
    "GIT_CONFIG_VALUE_1": "main",
    "GIT_CONFIG_KEY_2": "maintenance.auto",
    "GIT_CONFIG_VALUE_2": "false",
    "GIT_EDITOR": "true",
}
MAKE = """
set -e
mkdir "$1"; cd "$1"
git init -q --bare lib.git; git init -q lib; cd lib
echo lib > lib.txt; git add .; git commit -qm lib; git push -q ../lib.git main; cd ..
git init -q --bare origin.git; git init -q first; cd first
mkdir dir; echo one > one; echo two > dir/two; git add .; git commit -qm first
git tag v1; git branch topic; git branch gone
git push -q ../origin.git main topic gone; cd ..
git clone -q origin.git project; cd project
git worktree add -q ../elsewhere -b elsewhere
cd ..; rm lib.git/hooks/* lib/.git/hooks/* origin.git/hooks/* first/.git/hooks/*
"""
# A fifth of the time that MAKE takes.
COPY = """
cp -a "$1" "$2"; cd "$2"
sed -i "s#$1/#$2/#" elsewhere/.git project/.git/config project/.git/worktrees/elsewhere/gitdir
"""
CALLS = """\
git status
git log --oneline
git diff
git checkout -q -b feature
git branch --track t1 origin/topic
git checkout -b t2 --track origin/topic
git switch -c t3 origin/topic
git switch main
git branch -u origin/topic feature
git branch --unset-upstream feature
git branch -m t2 t2-renamed
git branch -c t3 t3-copied
git branch -d t1
git branch -D t3-copied
git branch --edit-description t3
git branch -vv
git remote add up https://example.com/up.git
git remote set-url up https://example.com/other.git
git remote rename up upstream
git remote set-branches upstream main
git remote -v
git remote remove upstream
git remote show -n origin
git config some.key value
git config --add some.key second
git config --unset-all some.key
git config --rename-section branch.t3 branch.t3x
git config --rename-section branch.t3x branch.t3
git config --remove-section nothing
git config --local --list
git config core.autocrlf false
git init
git config core.fileMode true
echo 1 >> one && git add one && git commit -m edit
echo 2 >> one && git commit -am more
git commit --amend -m amended
git commit --allow-empty -m empty
git push
git push -u origin main
git push -u origin feature
git push origin --delete feature
git fetch
git fetch --prune
git fetch --set-upstream origin main
git pull
git pull --rebase
git pull --set-upstream origin main
echo 3 >> one && git stash
git stash list
git stash pop
git checkout -- one
git restore --source HEAD~1 dir
git reset --hard HEAD
git checkout feature
echo f > feature.txt && git add . && git commit -m feature
git rebase main
git checkout main
git merge feature
git merge --no-ff -m merged topic
git cherry-pick feature
git cherry-pick --abort
git revert --no-edit HEAD~1
git tag -a v2 -m two
git tag -d v1
git mv one uno
git rm -q dir/two
git commit -m moved
git clean -fdx
git submodule add ROOT/lib.git sub
git commit -m submodule
git submodule init
git submodule update --init
git submodule status
git submodule foreach pwd
git submodule sync
git submodule deinit -f sub
git submodule update --init
git worktree add inner -b inner
git worktree list
git worktree lock inner
git worktree unlock inner
git worktree remove --force inner
git worktree prune
git sparse-checkout init --cone
git sparse-checkout set dir
git sparse-checkout list
git sparse-checkout disable
git notes add -m note
git bisect start HEAD v2
git bisect reset
git reflog
git pack-refs --all
git repack -ad
git gc --prune=now
git fsck
git maintenance run
git describe --always
git archive HEAD -o /dev/null
git format-patch -1 --stdout
git apply --check /dev/null
git blame uno
git shortlog -s HEAD
git rev-parse --git-dir --git-common-dir --is-bare-repository --show-toplevel
git config --edit
git update-index --refresh
git hash-object -w uno
git remote prune origin
git branch --list
git worktree repair
"""
# `git init` tries whether the mode of `.git/config` can be changed, and looks at that of the link: the session finds
# core.fileMode false, on its own copy.
RUN = """
while IFS= read -r call; do
    sh -c "$call" > /dev/null 2>&1 < /dev/null
    echo "## $? $call"
    git for-each-ref; git status --porcelain=v2 --branch; git config --local --list; git worktree list
    git -C sub config --local --list 2>&1; cat .gitmodules .git/logs/refs/stash 2>&1; ls -A . sub 2>&1
done
"""


def plainly(home: Home, script: str, *words: str | Path, cwd: Path, input: str = "") -> str:
    done = subprocess.run(
        ["sh", "-c", script, "sh", *map(str, words)],
        input=input,
        env=home.environment(IDENTITY),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        **home.identity.popen,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stderr
    out: str = done.stdout
    return out


def by_call(output: str, root: Path) -> dict[str, list[str]]:
    """What was seen after each call, by the call and its exit status."""
    parts = [part.splitlines() for part in output.replace(str(root), "ROOT").split("## ")[1:]]
    return {
        f"{number}: {call}": sorted(line for line in seen if not line.startswith("core.filemode="))
        for number, (call, *seen) in enumerate(parts)
    }


_templates: dict[Identity, Home] = {}


@pytest.fixture(scope="module", autouse=True)
def templates() -> Iterator[None]:
    yield
    while _templates:
        _templates.popitem()[1].close()


def template(identity: Identity) -> Path:
    if identity not in _templates:
        home = _templates[identity] = Home(identity)
        plainly(home, MAKE, home.work / "made", cwd=home.work)
    return _templates[identity].work / "made"


def made(home: Home) -> Path:
    """A project with its remote, a library and a second worktree, at the same paths each time."""
    root = home.work / "made"
    shutil.rmtree(root, ignore_errors=True)
    plainly(home, COPY, template(home.identity), root, cwd=home.work)
    return root


def test_every_call_does_as_on_the_host(netsandbox: CommandLine) -> None:
    need("git", "git")
    home = netsandbox.home()
    root = made(home)
    calls = CALLS.replace("ROOT", str(root))
    expected = by_call(plainly(home, RUN, cwd=root / "project", input=calls), root)
    made(home)
    done = netsandbox(
        *("run", "--allow-write", root / "origin.git", "--allow-read", root / "lib.git"),
        *("--", "sh", "-c", RUN),
        cwd=root / "project",
        env=IDENTITY,
        input=calls,
        timeout=240,
    )
    found = by_call(done.stdout, root)
    assert list(found) == list(expected)
    for call, state in expected.items():
        assert found[call] == state, call
    listed = plainly(home, "git config --local --list; git status --porcelain", cwd=root / "project")
    assert "branch.feature.merge=refs/heads/feature\n" in listed
    assert f"submodule.sub.url={root}/lib.git\n" in listed
    assert "core.autocrlf" not in listed
    assert "core.autocrlf" in done.stderr
    assert not (root / "project/.git/commondir").exists()


@pytest.mark.parametrize("count", [500, 520])
def test_many_worktrees_are_protected_and_too_many_are_read_only(netsandbox: CommandLine, count: int) -> None:
    """The plan for so many mounts is longer than one message."""
    home = netsandbox.home()
    project = home.work / "many"
    script = f"""
    git init -q . && read -r head < .git/HEAD && mkdir -p $(seq -f .git/worktrees/%g {count})
    for each in $(seq {count}); do
        echo ../.. > .git/worktrees/$each/commondir; echo "$head" > .git/worktrees/$each/HEAD
        echo /nonexistent/$each/.git > .git/worktrees/$each/gitdir
    done"""
    project.mkdir()
    os.chown(project, home.identity.uid, home.identity.gid)
    plainly(home, script, cwd=project)
    evil = (
        "for each in .git/worktrees/*; do echo evil >> $each/commondir; echo evil > $each/config.worktree; done; true"
    )
    done = netsandbox("run", "--", "sh", "-c", evil, cwd=project)
    assert done.returncode == 0, done.stderr
    assert plainly(home, "grep -r evil .git/worktrees; true", cwd=project) == ""
    if count > MAX_WORKTREES:
        assert "/many/.git/worktrees; these are read-only" in done.stderr
    else:
        assert "lines about configuration files of git are left out" in done.stderr
