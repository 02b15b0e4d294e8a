"""Nothing that a session puts into its repository makes the host's git run a program.

The canary is a program in the project that leaves a file in the host's home. Each attack succeeds where files are open:
that is tested too, so that a defence cannot seem to hold because the attack was wrong.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_git_calls import IDENTITY, made, plainly, templates
from tests.rig.command import CommandLine, Home
from tests.rig.world import need

__all__ = ["templates"]
pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
]

# What is on the host first, what the session does, and where the host's git runs then.
EVIL = 'printf "[core]\\n\\tbare = false\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = $PWD/evil\\n"'
FAKE = f"mkdir -p fake/hooks; cp -r .git/objects .git/refs .git/HEAD fake/; {EVIL} > fake/config"
ATTACKS = {
    "write": ("", f"{EVIL} >> .git/config", "."),
    "git-config": ("", "git config core.fsmonitor $PWD/evil", "."),
    "replace": ("", f"{EVIL} > new; rm -f .git/config; mv new .git/config; cp new .git/config", "."),
    "rename": ("", f"{EVIL} > new; mv .git/config .git/old; mv new .git/config", "."),
    "commondir": ("", f"{FAKE}; echo ../fake > .git/commondir", "."),
    "commondir-moved": ("", f"{FAKE}; echo ../fake > new; mv -f new .git/commondir", "."),
    "git-moved": ("", f"cp -r .git copy; rm -f copy/config; {EVIL} > copy/config; mv .git old; mv copy .git", "."),
    "git-file": ("", f"{FAKE}; mv .git old; echo gitdir: fake > .git", "."),
    "config-worktree": (
        "git config extensions.worktreeConfig true",
        f"{EVIL} > .git/config.worktree; git config --worktree core.fsmonitor $PWD/evil",
        ".",
    ),
    "include": ("echo '[a]' > shared; git config include.path ../shared", f"{EVIL} > shared", "."),
    "include-folder": (
        "mkdir -p conf/a; echo '[a]' > conf/a/shared; git config include.path ../conf/a/shared",
        f"mv conf old; mkdir -p conf/a; {EVIL} > conf/a/shared",
        ".",
    ),
    "include-link": (
        "echo '[a]' > target; ln -s target shared; git config include.path ../shared",
        f"{EVIL} > new; ln -sf new shared; cp new target",
        ".",
    ),
    "include-twice": (
        "echo '[a]' > b; printf '[include]\\n\\tpath = b\\n' > a; git config include.path ../a",
        f"{EVIL} > b",
        ".",
    ),
    "hooks": ("", "cp evil .git/hooks/post-index-change; cp evil .git/hooks/pre-commit", "."),
    "no-hooks": ("rm -r .git/hooks", "mkdir .git/hooks; cp evil .git/hooks/pre-commit", "."),
    "hooks-moved": ("", "mv .git/hooks .git/old; mkdir .git/hooks; cp evil .git/hooks/pre-commit", "."),
    "hooks-path": ("mkdir -p x/h; git config core.hooksPath x/h", "cp evil x/h/pre-commit", "."),
    "hooks-path-moved": (
        "mkdir -p x/h; git config core.hooksPath x/h",
        "mv x y; mkdir -p x/h; cp evil x/h/pre-commit",
        ".",
    ),
    "config-link": ("mv .git/config real; ln -s ../real .git/config", f"{EVIL} > real; {EVIL} > .git/config", "."),
    "git-link": ("mv .git real; ln -s real .git", f"cp -r real fake; {EVIL} > fake/config; ln -sfn fake .git", "."),
    "no-config": ("rm .git/config", f"{EVIL} > .git/config", "."),
    "nested": ("git init -q deep/nested", f"{EVIL} > deep/nested/.git/config", "deep/nested"),
    "deep": (
        "mkdir wide; cd wide; mkdir -p $(seq -f %g/deep 200); git init -q 200/deep/nested",
        f"{EVIL} > wide/200/deep/nested/.git/config",
        "wide/200/deep/nested",
    ),
    "nested-moved": (
        "git init -q deep/nested",
        f"mv deep old; mkdir deep; git init -q deep/nested; {EVIL} > deep/nested/.git/config",
        "deep/nested",
    ),
    "bare": (
        "git init -q --bare deep/bare.git",
        f'{EVIL} > deep/bare.git/config; echo "worktree = $PWD" >> deep/bare.git/config',
        "deep/bare.git",
    ),
    "bare-of-links": (
        "git init -q --bare deep/bare.git; mv deep/bare.git/objects o; mv deep/bare.git/refs r;"
        " ln -s ../../o deep/bare.git/objects; ln -s ../../r deep/bare.git/refs",
        f'{EVIL} > deep/bare.git/config; echo "worktree = $PWD" >> deep/bare.git/config',
        "deep/bare.git",
    ),
    "beyond-the-search": (
        "for n in $(seq 100 180); do mkdir d$n; done; git init -q d175",
        f"{EVIL} >> d175/.git/config",
        "d175",
    ),
    "neighbour-names-commondir": (
        "git init -q zzz; git init -q --bare '!a'; git -C '!a' config core.hooksPath $PWD/zzz/.git/commondir",
        f"{FAKE}; echo ../../fake > zzz/.git/commondir",
        "zzz",
    ),
    "neighbour-includes-config": (
        "git init -q zzz; mkdir zzz/h; git -C zzz config core.hooksPath h; git init -q --bare '!a';"
        " git -C '!a' config include.path $PWD/zzz/.git/config",
        "cp evil zzz/h/pre-commit",
        "zzz",
    ),
    "neighbour-includes-the-users-file": (
        "git config --global core.hooksPath .githooks; mkdir .githooks; git init -q --bare '!a';"
        " git -C '!a' config include.path ~/.gitconfig",
        "cp evil .githooks/pre-commit",
        ".",
    ),
    "submodule": ("git submodule add -q ../lib.git sub", f"{EVIL} > .git/modules/sub/config", "."),
    "submodule-hooks": ("git submodule add -q ../lib.git sub", "cp evil .git/modules/sub/hooks/pre-commit", "sub"),
    "submodule-commondir": (
        "git submodule add -q ../lib.git sub",
        f"{FAKE}; echo $PWD/fake > .git/modules/sub/commondir",
        "sub",
    ),
    "submodule-file": ("git submodule add -q ../lib.git sub", f"{FAKE}; echo gitdir: ../fake > sub/.git", "."),
    "submodule-folder": (
        "git submodule add -q ../lib.git sub",
        f"{FAKE}; mv sub old; mkdir sub; echo gitdir: ../fake > sub/.git",
        ".",
    ),
    "modules-moved": (
        "git submodule add -q ../lib.git sub",
        f"cp -r .git/modules new; {EVIL} > new/sub/config; mv .git/modules old; mv new .git/modules",
        "sub",
    ),
    "worktree": ("", f"{FAKE}; echo $PWD/fake > .git/worktrees/elsewhere/commondir", "../elsewhere"),
    "worktree-moved": (
        "",
        f"{FAKE}; cd .git/worktrees; cp -r else* n; echo $OLDPWD/fake > n/commondir; mv elsewhere x; mv n elsewhere",
        "../elsewhere",
    ),
    "worktrees-moved": (
        "",
        f"{FAKE}; cd .git; cp -r worktrees n; echo $OLDPWD/fake > n/elsewhere/commondir;"
        " mv worktrees x; mv n worktrees",
        "../elsewhere",
    ),
    "worktree-config": (
        "git config extensions.worktreeConfig true",
        f"{EVIL} > .git/worktrees/elsewhere/config.worktree",
        "../elsewhere",
    ),
}
HOST = "cd $1; git status; git -c core.bare=false commit --allow-empty -qm host; git checkout -q HEAD; true"


def prepared(home: Home, first: str) -> tuple[Path, Path]:
    """The project, and the file that the canary makes."""
    need("git", "git")
    canary, project = home.path / "canary", made(home) / "project"
    evil = project / "evil"
    evil.write_text(f"#!/bin/sh\necho ran >> {canary}\n")
    evil.chmod(0o755)
    os.chown(evil, home.identity.uid, home.identity.gid)
    plainly(home, first or ":", cwd=project)
    return project, canary


@pytest.mark.ordinary_user
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_host_runs_nothing_of_it(netsandbox: CommandLine, attack: str) -> None:
    """Neither while the session works, as prompts and editors do, nor after it."""
    first, script, where = ATTACKS[attack]
    home = netsandbox.home()
    project, canary = prepared(home, first)
    session = netsandbox.spawn(
        *("run", "--", "sh", "-c", f"{{ {script}; }} 2> /dev/null; echo made; read -r end"),
        cwd=project,
        env=IDENTITY,
        stdin=subprocess.PIPE,
    )
    session.read_until(b"made")
    plainly(home, HOST, where, cwd=project)
    assert not canary.exists()
    session.process.communicate(b"\n", 60)
    plainly(home, HOST, where, cwd=project)
    assert not canary.exists()


@pytest.mark.ordinary_user
@pytest.mark.backend("broker")
@pytest.mark.parametrize("attack", ATTACKS)
def test_without_mounts_the_host_runs_nothing_of_it_after_the_session(netsandbox: CommandLine, attack: str) -> None:
    first, script, where = ATTACKS[attack]
    home = netsandbox.home()
    project, canary = prepared(home, first)
    netsandbox("run", "--", "sh", "-c", f"{{ {script}; }} 2> /dev/null; true", cwd=project, env=IDENTITY)
    canary.unlink(missing_ok=True)  # the session's own git may run it
    plainly(home, HOST, where, cwd=project)
    assert not canary.exists()


@pytest.mark.parametrize("attack", ATTACKS)
def test_where_files_are_open_the_attack_succeeds(netsandbox: CommandLine, attack: str) -> None:
    first, script, where = ATTACKS[attack]
    home = netsandbox.home()
    project, canary = prepared(home, first)
    netsandbox("run", "--files", "open", "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    plainly(home, HOST, where, cwd=project)
    assert canary.exists()


SPIN = """
import os, sys, time
evil, way = sys.argv[1:]
def put(path):
    with open(path, "w") as file:
        file.write(evil)
def attempt():
    if os.path.islink(".git/config"):
        return False
    if way == "rename":
        os.replace(".git/planted", ".git/config")
        put("held")
    elif way == "open":
        with open(".git/config", "r+", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW)) as file:
            put("held")
            time.sleep(1)
            file.write(evil)
    else:
        os.link(".git/config", ".git/linked", follow_symlinks=False)
        if not os.path.islink(".git/linked"):
            put("held")
            time.sleep(1)
            put(".git/linked")
    return True
put(".git/planted")
print("made", flush=True)
while True:
    try:
        if attempt():
            break
    except OSError:
        pass
time.sleep(1)
"""


@pytest.mark.ordinary_user
def test_a_cover_comes_back_when_the_host_replaces_the_file(netsandbox: CommandLine) -> None:
    """A rename on the host detaches what is mounted on the file, in every namespace."""
    home = netsandbox.home()
    project, canary = prepared(home, "")
    wait = "until [ -e go ]; do sleep 0.05; done; until [ -L .git/config ]; do sleep 0.05; done"
    session = netsandbox.spawn(
        *("run", "--", "sh", "-c", f"echo made; {wait}; {EVIL} >> .git/config; rm -f .git/config; echo tried"),
        cwd=project,
        env=IDENTITY,
    )
    session.read_until(b"made")
    plainly(home, "git branch --track tracking origin/topic; git config user.name mine; touch go", cwd=project)
    session.read_until(b"tried")
    plainly(home, HOST, ".", cwd=project)
    assert not canary.exists()
    assert session.wait() == 0
    config = (project / ".git/config").read_text()
    assert "fsmonitor" not in config
    assert "name = mine" in config
    assert 'branch "tracking"' in config


@pytest.mark.ordinary_user
@pytest.mark.parametrize("way", ["rename", "open", "link"])
def test_what_a_session_does_while_the_cover_is_off_is_taken_back(netsandbox: CommandLine, way: str) -> None:
    """It replaces the file that the host's git has just put there, or keeps it open or linked, to write it later."""
    home = netsandbox.home()
    project, canary = prepared(home, "")
    evil = f"[core]\n\tbare = false\n\tfsmonitor = {project}/evil\n"
    session = netsandbox.spawn(
        *("run", "--", home.identity.python, "-I", "-S", "-c", SPIN, evil, way),
        cwd=project,
        env=IDENTITY,
    )
    session.read_until(b"made")
    for number in range(40):
        plainly(home, 'git branch --track "t$1" origin/topic || true', str(number), cwd=project)
        if session.process.poll() is not None or (project / "held").exists():
            break
    else:  # the cover was back in time each time
        session.signal(signal.SIGTERM)
    session.wait()
    assert "fsmonitor" not in (project / ".git/config").read_text()
    plainly(home, HOST, ".", cwd=project)
    assert not canary.exists()


LOCK = """
import fcntl, os, sys
held = os.open(".git", os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
fcntl.fcntl(held, fcntl.F_OFD_SETLK, fcntl.F_RDLCK.to_bytes(2, sys.byteorder) + bytes(30))
print("made", flush=True)
sys.stdin.readline()
"""


@pytest.mark.ordinary_user
def test_a_command_that_locks_the_git_directory_keeps_no_session_out(netsandbox: CommandLine) -> None:
    home = netsandbox.home()
    project, _ = prepared(home, "")
    python = (home.identity.python, "-I", "-S", "-c", LOCK)
    session = netsandbox.spawn("run", "--", *python, cwd=project, env=IDENTITY, stdin=subprocess.PIPE)
    session.read_until(b"made")
    assert netsandbox("run", "--", "git", "status", cwd=project, env=IDENTITY).returncode == 0
    session.process.communicate(b"\n", 60)
    assert not (project / ".git/commondir").exists()


FLOODS = {
    "repositories": (
        "for each in $(seq 80); do git init -q --template= a$each; done",
        f"{EVIL} > nested/.git/config",
        "nested",
    ),
    "modules": (
        "mkdir -p $(seq -f .git/modules/a%g 300)",
        "mkdir -p .git/modules/kept/hooks; cp evil .git/modules/kept/hooks/pre-commit",
        ".git/modules/kept",
    ),
}


@pytest.mark.ordinary_user
@pytest.mark.parametrize("flood", FLOODS)
def test_a_session_cannot_make_repositories_until_another_is_unprotected(netsandbox: CommandLine, flood: str) -> None:
    first, second, where = FLOODS[flood]
    home = netsandbox.home()
    project, canary = prepared(home, "git init -q nested; git init -q --bare .git/modules/kept")
    for script in (first, f"{{ {second}; }} 2> /dev/null; true"):
        done = netsandbox("run", "--", "sh", "-c", script, cwd=project, env=IDENTITY)
        assert done.returncode == 0, done.stderr
    assert "these are read-only" in done.stderr
    plainly(home, HOST, where, cwd=project)
    assert not canary.exists()
    assert not (project / ".git/modules/kept/hooks/pre-commit").exists()


# A folder that the second session makes readable again, the git directory in it, and where the host's git runs.
HIDDEN = {
    "folder": ("packages", "packages/nested/.git", "packages/nested"),
    "repository": ("packages/nested/.git", "packages/nested/.git", "packages/nested"),
    "modules": (".git/modules", ".git/modules/sub", "sub"),
    "module": (".git/modules/sub", ".git/modules/sub", "sub"),
    "worktrees": (".git/worktrees", ".git/worktrees/inner", "inner"),
    "worktree": (".git/worktrees/inner", ".git/worktrees/inner", "inner"),
}


@pytest.mark.ordinary_user
@pytest.mark.parametrize("case", HIDDEN)
def test_a_session_cannot_hide_a_repository_from_the_next_one(netsandbox: CommandLine, case: str) -> None:
    """The supervisor of an ordinary user cannot look into a folder without rights, and the command can change them."""
    folder, git, where = HIDDEN[case]
    home = netsandbox.home()
    project, canary = prepared(
        home,
        "git init -q packages/nested; git -c protocol.file.allow=always submodule --quiet add ../lib.git sub;"
        " git worktree add -q inner; git config extensions.worktreeConfig true",
    )
    attack = f"{EVIL} > {git}/config; {EVIL} > {git}/config.worktree; cp evil {git}/hooks/pre-commit"
    for script in (f"chmod 0 {folder}", f"chmod 755 {folder}; {{ {attack}; }} 2> /dev/null; true"):
        netsandbox("run", "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    plainly(home, f"chmod 755 {folder}", cwd=project)
    plainly(home, HOST, where, cwd=project)
    assert not canary.exists()
