"""A sandboxed `subprocess.Popen`: pipes, signals, the end, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox import Policy, Sandbox
from netsandbox.errors import CommandError, HostError
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.usefixtures("user_namespaces")
WAITS = "trap 'exit 4' TERM; echo; sleep 600 & wait"


@pytest.fixture
def box() -> Sandbox:
    return Sandbox(Policy())


def test_it_is_a_popen(box: Sandbox) -> None:
    with box.popen(["sh", "-c", WAITS], stdout=subprocess.PIPE, text=True) as process:
        assert isinstance(process, subprocess.Popen)
        assert process.args == ["sh", "-c", WAITS]
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        assert (process.poll(), process.outcome) == (None, None)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.terminate()
        assert process.wait() == 4
    assert process.outcome is not None
    assert process.outcome.session == process.session
    assert Path(process.audit_log).exists()


def test_kill_ends_the_whole_session_in_order(box: Sandbox) -> None:
    with box.popen(["sh", "-c", "(setsid sleep 600; true) & echo; wait"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -9
        assert process.stdout.read() == b""  # nobody has it open any more
    assert '"audit.seal"' in Path(process.audit_log).read_text()


def test_a_supervisor_that_does_not_end_is_killed_by_the_second_call(box: Sandbox) -> None:
    """INV-10: the session dies with it."""
    with box.popen(["sh", "-c", "echo; sleep 600"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        os.kill(process.pid, signal.SIGSTOP)
        process.kill()
        assert process.poll() is None
        process.kill()
        assert process.wait() == -9
        assert process.stdout.read() == b""
    assert process.outcome is not None
    assert process.outcome.denied == ()


def test_a_session_ends_with_its_program(tmp_path: Path, box: Sandbox) -> None:
    """INV-10."""
    script = """
import os
from netsandbox import Policy, Sandbox
process = Sandbox(Policy()).popen(["sh", "-c", "echo; sleep 600"], stdout=-1)
process.stdout.read(1)
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    wait_for(lambda: any("audit.seal" in log.read_text() for log in (tmp_path / "state").rglob("audit.jsonl")))


def test_what_could_not_be_started_is_raised_by_wait(box: Sandbox) -> None:
    process = box.popen(["no-such-command"])
    with pytest.raises(CommandError):
        process.wait()
    assert (process.poll(), process.outcome) == (127, None)


def test_a_supervisor_that_fails_without_a_report_is_an_error(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-1: a status without a session is not the command's."""
    monkeypatch.setattr("netsandbox.api.channel._MAIN", "/dev/null")
    process = box.popen(["true"])
    with pytest.raises(HostError, match="without a report"):
        process.wait()


def test_signals_that_would_only_hit_the_supervisor_are_refused(box: Sandbox) -> None:
    with box.popen(["true"]) as process, pytest.raises(ValueError, match="not passed on"):
        process.send_signal(signal.SIGALRM)
