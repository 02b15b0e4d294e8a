"""After a session the host's git runs nothing that the session left in a repository of the project, on both backends.

The canary is a program in the project that leaves a file in the host's home. Each attack succeeds where files are open,
and the twins show what a session may leave: settings that run nothing, and operations that the host goes on with.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_git_attacks import EVIL, prepared
from tests.integration.test_git_calls import IDENTITY, plainly, templates
from tests.rig.command import CommandLine

__all__ = ["templates"]
pytestmark = [pytest.mark.usefixtures("user_namespaces")]

LARGE = "head -c 1100000 /dev/zero | tr '\\0' '#'"
STATUS = "cd $1; git status; git commit --allow-empty -qm host; true"
# What is on the host first, what the session does, what the host does then, and where.
CONFIGURATIONS = {
    "large": ("", f"{{ {EVIL}; {LARGE}; }} > new; rm -f .git/config; cp new .git/config", STATUS, "."),
    "large-of-a-worktree": (
        "git config extensions.worktreeConfig true",
        f"{{ {EVIL}; {LARGE}; }} > .git/config.worktree",
        STATUS,
        ".",
    ),
    "folder-without-writing": ("", f"{EVIL} >> .git/config; chmod 500 .git", STATUS, "."),
    "folder-without-rights": ("", f"{EVIL} >> .git/config; chmod 0 .git", f"chmod 755 .git; {STATUS}", "."),
    "file-without-rights": ("", f"{EVIL} >> .git/config; chmod 0 .git/config", f"chmod 644 .git/*; {STATUS}", "."),
    "folder-above-without-rights": (
        "git init -q a/b",
        f"{EVIL} >> a/b/.git/config; chmod 0 a",
        f"chmod 755 a; {STATUS}",
        "a/b",
    ),
    "link": ("", f"mv .git/config x; {EVIL} >> x; ln -s ../x .git/config", STATUS, "."),
    "folder-replaced": ("", f"mv .git g; cp -r g .git; {EVIL} >> .git/config", STATUS, "."),
    "folder-replaced-with-hooks": (
        "",
        "mv .git g; cp -r g .git; mkdir -p .git/hooks; cp evil .git/hooks/pre-commit",
        STATUS,
        ".",
    ),
    "folder-linked": ("", f"mv .git g; {EVIL} >> g/config; ln -s g .git", STATUS, "."),
    "folder-named": ("", f"mv .git g; {EVIL} >> g/config; echo gitdir: g > .git", STATUS, "."),
    "locked": ("", f"{EVIL} >> .git/config; touch .git/config.lock", STATUS, "."),
}
COMMITS = "for n in 1 2 3; do echo $n > new$n; git add new$n; git commit -qm $n; done"
STOPPED = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -qi HEAD~2"
TODO = "rebase-merge/git-rebase-todo"
OPEN = "chmod -R u+rwX .git; cd $1; git rebase --continue; true"
STRATEGY = "mkdir git-merge-x; cp evil git-merge-x/evil"
OPERATIONS = {
    "exec": (f"{COMMITS}; {STOPPED}", f'echo "exec $PWD/evil" >> .git/{TODO}', OPEN, "."),
    "x": (f"{COMMITS}; {STOPPED}", f'printf "\\t x\\t$PWD/evil\\n" >> .git/{TODO}', OPEN, "."),
    "replaced": (f"{COMMITS}; {STOPPED}", f'echo "x $PWD/evil" > n; mv n .git/{TODO}', OPEN, "."),
    "todo-link": (f"{COMMITS}; {STOPPED}", f'echo "x $PWD/evil" > n; ln -sf ../../n .git/{TODO}', OPEN, "."),
    "todo-large": (
        f"{COMMITS}; {STOPPED}",
        f'{{ echo "x $PWD/evil"; {LARGE}; }} > .git/{TODO}',
        OPEN,
        ".",
    ),
    "todo-without-rights": (
        f"{COMMITS}; {STOPPED}",
        f'echo "x $PWD/evil" >> .git/{TODO}; chmod 0 .git/{TODO} .git/rebase-merge',
        f"chmod u+rwx .git/rebase-merge; {OPEN}",
        ".",
    ),
    "folder-link": (
        f"{COMMITS}; {STOPPED}",
        'mv .git/rebase-merge r; ln -s ../r .git/rebase-merge; echo "x $PWD/evil" >> r/git-rebase-todo',
        OPEN,
        ".",
    ),
    "worktree": (
        f"cd ../elsewhere; {COMMITS}; {STOPPED}",
        f'echo "exec $PWD/evil" >> .git/worktrees/elsewhere/{TODO}',
        OPEN,
        "../elsewhere",
    ),
    "strategy": (
        f"{COMMITS}; {STOPPED}",
        f"{STRATEGY}; git commit -q --amend -m new; echo x/evil > .git/rebase-merge/strategy",
        OPEN,
        ".",
    ),
    "begun-inside": ("", f"{COMMITS}; {STOPPED} -x $PWD/evil", OPEN, "."),
    "worktree-made-inside": (
        "",
        f"E=$PWD/evil; git worktree add -q inner; cd inner; {COMMITS}; {STOPPED} -x $E",
        OPEN,
        "inner",
    ),
    "repository-made-inside": (
        "",
        f"E=$PWD/evil; git init -q sub; cd sub; echo a > a; git add a; git commit -qm a; {COMMITS}; {STOPPED} -x $E",
        "cd $1; git rebase --continue; true",
        "sub",
    ),
    "cherry-pick": (
        "",
        f"{COMMITS}; git checkout -qb o HEAD~3; echo x > new2; git add new2; git commit -qm x;"
        f" git cherry-pick main~1 main; {STRATEGY}; printf '[options]\\n\\tstrategy = x/evil\\n' > .git/sequencer/opts",
        "echo y > new2; git add new2; git cherry-pick --continue; true",
        ".",
    ),
}
ATTACKS = {**CONFIGURATIONS, **OPERATIONS}


def attacked(netsandbox: CommandLine, attack: str, *options: str) -> tuple[Path, str]:
    """The file that the canary makes, and what the session says."""
    first, script, then, where = ATTACKS[attack]
    home = netsandbox.home()
    project, canary = prepared(home, f"{{ {first or ':'}; }} > /dev/null 2>&1")
    done = netsandbox("run", *options, "--", "sh", "-c", f"{{ {script}; }} 2>&1; true", cwd=project, env=IDENTITY)
    canary.unlink(missing_ok=True)  # the session's own git may run it
    plainly(home, f"{{ {then}; }} 2>&1", where, cwd=project)
    return canary, done.stderr


@pytest.mark.attack(260)
@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("attack", CONFIGURATIONS)
def test_the_host_obeys_no_configuration_that_a_session_left(netsandbox: CommandLine, attack: str) -> None:
    canary, _ = attacked(netsandbox, attack)
    assert not canary.exists()


@pytest.mark.attack(261)
@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("attack", OPERATIONS)
def test_the_host_goes_on_with_no_command_that_a_session_left(netsandbox: CommandLine, attack: str) -> None:
    canary, said = attacked(netsandbox, attack)
    assert not canary.exists()
    assert ".netsandbox" in said


@pytest.mark.parametrize("attack", ATTACKS)
def test_where_files_are_open_the_attack_succeeds(netsandbox: CommandLine, attack: str) -> None:
    canary, _ = attacked(netsandbox, attack, "--files", "open")
    assert canary.exists()


# What a session or the host may do, what the host does then, and what it prints.
HARMLESS = {
    "remote": (
        "",
        "git remote add up https://example.com/up.git",
        "git remote get-url up",
        "https://example.com/up.git",
    ),
    "push": ("", "git checkout -qb b; git push -qu origin b", "git rev-parse --abbrev-ref @{u}", "origin/b"),
    "commit": ("", "echo x > x; git add x; git commit -qm inside", "git log -1 --format=%s", "inside"),
    "a rebase of the host's": (
        f"{COMMITS}; {STOPPED} -x 'touch ran'",
        "git commit -q --amend -m amended",
        "git rebase --continue > /dev/null 2>&1; git status --porcelain; git log -2 --format=%s",
        "?? evil\n?? ran\n3\namended",
    ),
    "a rebase that the session goes on with": (
        f"{COMMITS}; GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -qi HEAD~2",
        "git commit -q --amend -m amended; git rebase --continue",
        "git rebase --continue > /dev/null 2>&1; git status -uno --porcelain -b; git log -2 --format=%s",
        "## main...origin/main [ahead 3]\n3\namended",
    ),
    "a rebase of the session's": (
        "",
        f"{COMMITS}; {STOPPED}",
        "git rebase --continue > /dev/null 2>&1; git status -uno --porcelain -b; git log -1 --format=%s",
        "## main...origin/main [ahead 3]\n3",
    ),
}


@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("case", HARMLESS)
def test_the_host_goes_on_with_what_runs_nothing(netsandbox: CommandLine, case: str) -> None:
    first, script, then, expected = HARMLESS[case]
    home = netsandbox.home()
    project, _ = prepared(home, f"{{ {first or ':'}; }} > /dev/null 2>&1")
    options = ("--allow-write", project.parent / "origin.git")
    done = netsandbox("run", *options, "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    assert ".netsandbox" not in done.stderr
    assert "taken back" not in done.stderr
    assert plainly(home, then, cwd=project).strip() == expected


RACE = """
import os, sys, threading
evil = sys.argv[1]
print("made", flush=True)
os.chdir(".git")
def race(way):
    while not os.path.exists("../go"):
        try:
            if way == "large" and not os.path.islink("config"):
                with open("planted", "w") as file:
                    file.write(evil + "#" * 1100000)
                os.rename("planted", "config")
            elif way == "link":
                if not os.path.islink("config"):
                    os.rename("config", "moved")
                    os.symlink("moved", "config")
            elif way == "lock":
                with open("config.lock", "r+") as file:
                    file.write(evil)
        except OSError:
            pass
threads = [threading.Thread(target=race, args=(way,)) for way in sys.argv[2].split(",")]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.attack(260)
@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("ways", ["large", "link", "lock", "large,link,lock"])
def test_a_session_that_writes_while_the_host_does_leaves_nothing(netsandbox: CommandLine, ways: str) -> None:
    """The host's git replaces its file, and a cover comes off; the session is at it all the time."""
    home = netsandbox.home()
    project, canary = prepared(home, "")
    evil = f"[core]\n\tbare = false\n\tfsmonitor = {project}/evil\n"
    python = (home.identity.python, "-I", "-S", "-c", RACE)
    session = netsandbox.spawn("run", "--", *python, evil, ways, cwd=project, env=IDENTITY)
    session.read_until(b"made")
    plainly(home, "for n in $(seq 40); do git config user.name n$n; done; touch go", cwd=project)
    session.wait()
    canary.unlink(missing_ok=True)  # while the session runs, it may win
    plainly(home, STATUS, ".", cwd=project)
    assert not canary.exists()
    assert "fsmonitor" not in (project / ".git/config").read_text()


@pytest.mark.ordinary_user
@pytest.mark.backend("namespaces", "broker")
def test_settings_of_the_host_during_a_session_stay(netsandbox: CommandLine) -> None:
    home = netsandbox.home()
    project, _ = prepared(home, "")
    session = netsandbox.spawn(
        *(
            "run",
            "--",
            "sh",
            "-c",
            "echo made; until [ -e go ]; do sleep 0.05; done; git branch -q --track in origin/topic",
        ),
        cwd=project,
        env=IDENTITY,
    )
    session.read_until(b"made")
    plainly(home, "git config user.name mine; git remote add up https://example.com/up.git; touch go", cwd=project)
    assert session.wait() == 0
    listed = plainly(home, "git config --local --list", cwd=project)
    for line in ("user.name=mine", "remote.up.url=https://example.com/up.git", "branch.in.merge=refs/heads/topic"):
        assert line in listed


@pytest.mark.attack(261)
@pytest.mark.ordinary_user
@pytest.mark.parametrize("script", [OPERATIONS["exec"][1], OPERATIONS["strategy"][1], "git rebase --continue"])
def test_apply_brings_an_operation_only_if_it_is_over(netsandbox: CommandLine, script: str) -> None:
    home = netsandbox.home()
    project, canary = prepared(home, f"{{ {COMMITS}; {STOPPED}; }} > /dev/null 2>&1")
    netsandbox("run", "--overlay", "--name", "fix", "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    done = netsandbox("apply", "fix", cwd=project)
    assert (".git/rebase-merge" in done.stderr) == (script != "git rebase --continue")
    assert (project / ".git/rebase-merge").exists() == (script != "git rebase --continue")
    plainly(home, f"{{ {OPEN}; }} 2>&1", ".", cwd=project)
    assert not canary.exists()
    assert plainly(home, "git log -1 --format=%s; git branch --show-current", cwd=project) == "3\nmain\n"


@pytest.mark.ordinary_user
def test_a_job_that_was_stopped_stays_so_when_the_host_sets_something(netsandbox: CommandLine) -> None:
    """A cover comes off and is put back, and no process of the session is stopped or resumed for it."""
    home = netsandbox.home()
    project, _ = prepared(home, "")
    script = (
        "sleep 600 & kill -STOP $!; echo made; until [ -e go ]; do sleep 0.05; done;"
        " until [ -L .git/config ]; do sleep 0.05; done; cut -d ' ' -f 3 /proc/$!/stat; kill -KILL $!"
    )
    session = netsandbox.spawn("run", "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    session.read_until(b"made")
    plainly(home, "git config user.name mine; touch go", cwd=project)
    session.read_until(b"T\n")
    assert session.wait() == 0
