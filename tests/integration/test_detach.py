"""A session in the background: it starts or says why not, keeps its output, and lives without its terminal."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_terminal import Terminal
from tests.rig.localhost import eventually

pytestmark = pytest.mark.usefixtures("user_namespaces")


def status_of(netsandbox: Any) -> Any:
    done = netsandbox("ps", "--json")
    (status,) = json.loads(done.stdout) or [done.stderr]
    return status


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.ordinary_user
def test_it_returns_when_the_command_runs_and_its_output_is_read_live_and_later(netsandbox: Any) -> None:
    script = "echo first; read line; echo got=$line.; while ! test -e go; do sleep 0.05; done; echo last >&2; exit 3"
    done = netsandbox("run", "--detach", "--name", "shop", "--", "sh", "-c", script, input="not for it\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "shop\n", "")
    assert status_of(netsandbox)["name"] == "shop"  # at once
    following = netsandbox.spawn("logs", "-f", "shop")
    following.read_until(b"first\ngot=.\n")
    (netsandbox.home().work / "go").touch()
    following.read_until(b"last\n")
    assert following.wait() == 0
    assert netsandbox("logs", "-n", "2", "shop").stdout == "got=.\nlast\n"
    (log,) = netsandbox.home().logs()
    assert [json.loads(line)["status"] for line in log.read_text().splitlines() if '"session.end"' in line] == [3]


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [(("no-such-command-here",), 127, "command not found"), (("/etc/passwd",), 126, "Permission denied")],
)
def test_a_launch_that_fails_is_the_callers(netsandbox: Any, command: tuple[str, ...], status: int, text: str) -> None:
    done = netsandbox("run", "--detach", "--", *command)
    assert (done.returncode, done.stdout, text in done.stderr) == (status, "", True)
    assert done.stderr.count("\n") == 1


def test_a_name_that_is_taken_is_the_callers_error(netsandbox: Any) -> None:
    assert netsandbox("run", "--detach", "--name", "shop", "--", "sleep", "100").returncode == 0
    taken = netsandbox("run", "--detach", "--name", "shop", "--", "sleep", "100")
    assert (taken.returncode, "shop is running already" in taken.stderr) == (1, True)
    assert netsandbox("stop", "shop").returncode == 0


def test_it_survives_its_terminal_and_notices_are_in_its_output(netsandbox: Any) -> None:
    terminal = Terminal(netsandbox)
    script = "while ! test -e go; do sleep 0.05; done; curl -sS -m 20 http://denied.test/; test -t 0 || echo no tty"
    terminal.type(f"netsandbox run --detach --name shop -- sh -c '{script}'\n")
    assert "`netsandbox logs shop` prints its output" in terminal.see("ends it")
    pid = status_of(netsandbox)["pid"]
    assert os.getsid(pid) == pid
    os.kill(terminal.shell.pid, signal.SIGHUP)
    terminal.shell.process.wait(20)
    terminal.shell.close()
    assert is_alive(pid)
    (netsandbox.home().work / "go").touch()
    shown = netsandbox("logs", "-f", "shop").stdout
    assert "no tty\n" in shown
    assert "netsandbox: denied denied.test:80" in shown


CURL = "curl -s -o /dev/null -m 20 http://denied.test/"
DENIED = "netsandbox: denied denied.test:80 (offline) to curl; allow it with --allow-domain denied.test\n"


@pytest.mark.backend("namespaces", "broker")
def test_denials_are_in_its_output_while_it_runs_and_not_again_at_the_end(netsandbox: Any) -> None:
    script = f"{CURL}; touch /etc/made; while ! test -e go; do sleep 0.05; done; echo last"
    netsandbox("run", "--detach", "--name", "shop", "--", "sh", "-c", script)
    eventually(lambda: DENIED in netsandbox("logs", "shop").stdout)
    (netsandbox.home().work / "go").touch()
    shown = netsandbox("logs", "-f", "shop").stdout
    assert "last\n" in shown
    assert shown.count("netsandbox: denied denied.test") == 1
    assert shown.count("netsandbox: denied writing /etc/made") <= 1  # the broker does not see it


def test_a_quiet_session_in_the_background_prints_no_denials(netsandbox: Any) -> None:
    netsandbox("run", "--detach", "-q", "--name", "shop", "--", *CURL.split())
    assert "denied" not in netsandbox("logs", "-f", "shop").stdout


@pytest.mark.backend("namespaces", "broker")
def test_a_supervisor_that_dies_takes_the_command_along(netsandbox: Any) -> None:
    """INV-10."""
    assert netsandbox("run", "--detach", "--", "sh", "-c", "exec sleep 1234").returncode == 0
    status = status_of(netsandbox)
    os.kill(status["pid"], signal.SIGKILL)
    eventually(lambda: not is_alive(status["init"]))
    assert json.loads(netsandbox("ps", "--json").stdout) == []


@pytest.mark.backend("namespaces", "broker")
def test_the_command_has_a_pipe_and_cannot_reach_the_file(netsandbox: Any) -> None:
    """INV-8."""
    script = "readlink /proc/self/fd/0 /proc/self/fd/1; find $0 -name output | grep . && echo reached; echo end"
    netsandbox("run", "--detach", "--name", "shop", "--", "sh", "-c", script, netsandbox.home().state / "netsandbox")
    lines = netsandbox("logs", "-f", "shop").stdout.splitlines()
    assert lines[0] == "/dev/null"
    assert lines[1].startswith("pipe:")
    assert "reached" not in lines
    assert lines[-1] == "end"


def test_questions_of_a_session_in_the_background_are_answered_elsewhere(netsandbox: Any) -> None:
    netsandbox("run", "--detach", "--ask", "--name", "shop", "--", "curl", "-sS", "-m", "60", "http://asked.test/")
    eventually(lambda: "asked.test" in netsandbox("pending").stdout)
    assert netsandbox("deny", "asked.test:80").returncode == 0
    assert "asked.test" in netsandbox("logs", "-f", "shop").stdout
