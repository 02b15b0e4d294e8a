"""A session makes a new repository in the project, which the host's git enters later, and it runs nothing of it.

The twins: each attack succeeds where files are open, and an honest repository stays as the session left it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_git_attacks import prepared
from tests.integration.test_git_calls import IDENTITY, plainly, templates
from tests.rig.command import CommandLine

__all__ = ["templates"]
pytestmark = [pytest.mark.usefixtures("user_namespaces")]

REPOSITORY = "git init -q sub; cd sub; echo a > a; echo c > c; git add a c; git commit -qm a"
# The host's git writes the index of a repository with an old file, and then runs its hook.
LINK = "cd $TOP; git add sub 2> /dev/null; echo b >> sub/a; touch -d 2001-01-01 sub/c"
HOOK = "mkdir -p h; cp $TOP/evil h/post-index-change; cp $TOP/evil h/pre-commit"
EVIL = 'printf "[core]\\n\\tfsmonitor = $TOP/evil\\n"'
ATTACKS = {
    "fsmonitor": f"{REPOSITORY}; git config core.fsmonitor $TOP/evil; {LINK}",
    "hooks-path": f"{REPOSITORY}; {HOOK}; git config core.hooksPath $PWD/h; {LINK}",
    "hooks": f"{REPOSITORY}; {HOOK}; mkdir -p .git/hooks; cp h/* .git/hooks; {LINK}",
    "hooks-link": f"{REPOSITORY}; {HOOK}; rm -rf .git/hooks; ln -s ../h .git/hooks; {LINK}",
    "filter": f"{REPOSITORY}; mkdir -p .git/info; echo 'a filter=x' > .git/info/attributes;"
    f" git config filter.x.clean $TOP/evil; {LINK}; echo a > sub/a; touch -d 2001-01-01 sub/a",
    "include": f"{REPOSITORY}; {EVIL} > i; git config include.path ../i; {LINK}",
    "worktree-config": f"{REPOSITORY}; git config extensions.worktreeConfig true;"
    f" {EVIL} > .git/config.worktree; {LINK}",
    "config-link": f"{REPOSITORY}; {EVIL} >> .git/config; mv .git/config c; ln -s ../c .git/config; {LINK}",
    "config-locked": f"{REPOSITORY}; {EVIL} >> .git/config; {LINK}; touch sub/.git/config.lock",
    "read-only": f"{REPOSITORY}; {EVIL} >> .git/config; {LINK}; chmod 555 sub/.git sub",
    "git-link": f"{REPOSITORY}; {EVIL} >> .git/config; mv .git g; ln -s g .git; {LINK}",
    "git-file": f"{REPOSITORY}; {EVIL} >> .git/config; mv .git g; echo gitdir: g > .git; {LINK}",
    "commondir": f"{REPOSITORY}; cp -r .git g; {EVIL} >> g/config; echo ../g > .git/commondir; {LINK}",
    "module": f"{REPOSITORY}; {EVIL} >> .git/config; mkdir -p ../.git/modules; mv .git ../.git/modules/sub;"
    f" echo gitdir: ../.git/modules/sub > .git; {LINK}",
    "second-name": f"{REPOSITORY}; {EVIL} >> .git/config; ln .git/config c; {LINK}",
    "below-a-bare-one": f"git init -q --bare x; cd x; {REPOSITORY}; {EVIL} >> .git/config;"
    " cd $TOP; git add x/sub 2> /dev/null; echo b >> x/sub/a",
    "closed-folder": f"mkdir x; cd x; {REPOSITORY}; {EVIL} >> .git/config;"
    " cd $TOP; git add x/sub 2> /dev/null; echo b >> x/sub/a; chmod 311 x",
    "in-an-installed-package": f"cd node_modules/p/lib; {REPOSITORY}; {EVIL} >> .git/config; mv .git a c ..;"
    " cd ..; rmdir sub; cd $TOP; git add -f node_modules/p/lib 2> /dev/null; mv .git/index .git/x; ln -s x .git/index",
    "worktree-of-it": f"{REPOSITORY}; git worktree add -q ../wt; {EVIL} >> .git/config; cd ..; git add wt 2> /dev/null;"
    " echo b >> wt/a",
    "worktree-with-hooks": "git worktree add -q wt; cd wt; mkdir .githooks; cp $TOP/evil .githooks/post-index-change;"
    " cd ..; git add wt 2> /dev/null; echo b > wt/new; touch wt/*",
}
HOST = "git status; git diff; git add -A; git stash; git commit -qm host --allow-empty; true"
FIRST = {
    "worktree-with-hooks": "git config core.hooksPath .githooks; mkdir .githooks",
    "in-an-installed-package": "mkdir -p node_modules/p/lib $(seq -f node_modules/%g 100)",
}


def attacked(netsandbox: CommandLine, attack: str, *options: str) -> tuple[Path, str]:
    """The file that the canary makes, and what the session says."""
    home = netsandbox.home()
    project, canary = prepared(home, FIRST.get(attack, ""))
    script = f"TOP=$PWD; {{ {ATTACKS[attack]}; }} > /dev/null 2>&1; true"
    done = netsandbox("run", *options, "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    canary.unlink(missing_ok=True)  # the session's own git runs it where files are open
    plainly(home, HOST, cwd=project)
    return canary, done.stderr


@pytest.mark.ordinary_user
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_host_runs_nothing_of_it(netsandbox: CommandLine, attack: str) -> None:
    canary, said = attacked(netsandbox, attack)
    assert not canary.exists()
    assert ".netsandbox" in said


@pytest.mark.parametrize("attack", ATTACKS)
def test_where_files_are_open_the_attack_succeeds(netsandbox: CommandLine, attack: str) -> None:
    canary, _ = attacked(netsandbox, attack, "--files", "open")
    assert canary.exists()


def test_an_option_leaves_it(netsandbox: CommandLine) -> None:
    home = netsandbox.home()
    project, canary = prepared(home, "mkdir sub")
    script = f"TOP=$PWD; {ATTACKS['fsmonitor']}"
    done = netsandbox("run", "--allow-write", "sub", "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    assert "lost" not in done.stderr
    plainly(home, HOST, cwd=project)
    assert canary.exists()


HONEST = """
git init -q --bare lib.git
git clone -q lib.git sub
cd sub
git config user.name Honest; git config user.email honest@example.com
git remote set-url origin https://example.com/lib
echo a > a; git add a; git commit -qm first; git checkout -qb topic; git config branch.topic.remote origin
git config branch.topic.merge refs/heads/topic
cd ..
git -c protocol.file.allow=always submodule --quiet add $PWD/sub module
git worktree add -q tree
"""
SAID = (
    "git -C sub remote -v; git -C sub branch --show-current; git -C sub log --format=%s%an; git -C sub config user.name"
)


@pytest.mark.ordinary_user
def test_an_honest_repository_stays_as_it_is(netsandbox: CommandLine) -> None:
    home = netsandbox.home()
    project, _ = prepared(home, "")
    keep = "for each in sub/.git lib.git .git/modules/module; do sha256sum $each/config $each/HEAD; ls $each; done"
    keep += "; stat -c %a module/.git tree/.git"
    done = netsandbox("run", "--", "sh", "-ec", f"{HONEST}\n{keep}", cwd=project, env=IDENTITY)
    assert done.returncode == 0, done.stderr
    assert ".netsandbox" not in done.stderr

    assert plainly(home, keep, cwd=project) == done.stdout
    said = plainly(home, f"set -e; {SAID}; git -C module log --format=%s; git -C tree status", cwd=project)
    assert "https://example.com/lib" in said
    assert "\ntopic\n" in said
    assert "firsta\nHonest" in said
