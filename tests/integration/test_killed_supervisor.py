"""The supervisor is killed after the session planted something, so that nothing of its end runs. What looks after it is
the next session, `ps` or `doctor`, wherever it is started; the host's git runs nothing then."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_git_attacks import prepared
from tests.integration.test_git_calls import IDENTITY, plainly, templates
from tests.rig.command import CommandLine, Home

__all__ = ["templates"]
pytestmark = [
    pytest.mark.usefixtures("user_namespaces"),
    pytest.mark.backend("namespaces", "broker"),
]
PLANT = (
    "git init -q sub; cd sub; echo a > a; git add a; git commit -qm a; git config core.fsmonitor $TOP/evil;"
    " cd ..; git add sub; echo b >> sub/a; echo x > .envrc"
)
AFTERWARDS = {"session": ["run", "--", "true"], "ps": ["ps"]}


def planted(netsandbox: CommandLine) -> tuple[Home, Path, Path]:
    """A session that planted a repository and a protected name, and whose supervisor was killed."""
    home = netsandbox.home()
    project, canary = prepared(home, "")
    script = f"TOP=$PWD; {{ {PLANT}; }} > /dev/null 2>&1; echo planted; sleep 60"
    running = netsandbox.spawn("run", "--", "sh", "-c", script, cwd=project, env=IDENTITY)
    running.read_until(b"planted")
    running.signal(signal.SIGKILL)
    running.wait()
    canary.unlink(missing_ok=True)
    return home, project, canary


@pytest.mark.attack(274)
@pytest.mark.ordinary_user
@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_what_a_killed_session_planted_is_taken_away_by_the_next_command(
    netsandbox: CommandLine, afterwards: str
) -> None:
    home, project, canary = planted(netsandbox)
    assert (project / ".envrc").exists(), "nothing of the end ran"
    done = netsandbox(*AFTERWARDS[afterwards])
    assert done.returncode == 0, done.stderr
    plainly(home, "git status; git diff; true", cwd=project)
    assert not canary.exists()
    assert not (project / ".envrc").exists()
    assert "after a session that was killed" in done.stderr
    assert "after a session" not in netsandbox(*AFTERWARDS[afterwards]).stderr


def test_without_that_the_hosts_git_runs_what_was_planted(netsandbox: CommandLine) -> None:
    home, project, canary = planted(netsandbox)
    plainly(home, "git status; git diff; true", cwd=project)
    assert canary.exists(), "the twin: the attack is one"


def test_a_session_that_runs_is_left_alone_and_leaves_no_note(netsandbox: CommandLine) -> None:
    home = netsandbox.home()
    project, _ = prepared(home, "")
    script = "echo x > .envrc; echo ready; read line; cat .envrc"
    running = netsandbox.spawn("run", "--", "sh", "-c", script, cwd=project, stdin=subprocess.PIPE)
    running.read_until(b"ready")
    assert "killed" not in netsandbox("ps").stderr
    assert (project / ".envrc").exists()
    notes = home.state / "netsandbox/unsettled"
    assert len(os.listdir(notes)) == 1
    assert running.process.stdin is not None
    running.process.stdin.write(b"\n")
    running.process.stdin.flush()
    running.read_until(b"x\n")
    assert running.wait() == 0
    assert os.listdir(notes) == []
