"""A command in a session behaves as it does outside: its status, its signals and its output are its own (INV-9)."""

from __future__ import annotations

import signal
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize(("script", "status"), [("true", 0), ("false", 1), ("exit 7", 7), ("exit 255", 255)])
def test_exit_status_is_the_commands(netsandbox: Any, script: str, status: int) -> None:
    assert netsandbox("run", "--", "sh", "-c", script).returncode == status


@pytest.mark.backend("namespaces", "broker")
def test_a_command_killed_by_a_signal_gives_128_plus_its_number(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "sh", "-c", "kill -TERM $$")
    assert run.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)


@pytest.mark.backend("namespaces", "broker")
def test_output_is_the_commands_and_nothing_else(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "sh", "-c", "printf out; printf err >&2")
    assert (run.stdout_bytes, run.stderr_bytes) == (b"out", b"err")


@pytest.mark.backend("namespaces", "broker")
def test_input_reaches_the_command_byte_for_byte(netsandbox: Any) -> None:
    data = bytes(range(256)) * 64
    assert netsandbox("run", "--", "cat", input=data).stdout_bytes == data


@pytest.mark.backend("namespaces", "broker")
def test_a_missing_command_is_127_and_one_that_is_no_program_126(netsandbox: Any) -> None:
    notes = netsandbox.home().work / "notes"
    notes.write_text("no program")
    notes.chmod(0o644)
    assert netsandbox("run", "--", "no-such-command-here").returncode == 127
    assert netsandbox("run", "--", notes).returncode == 126


@pytest.mark.backend("namespaces", "broker")
def test_every_run_leaves_a_log_with_a_start_and_an_end(netsandbox: Any) -> None:
    run = netsandbox("run", "--", "true")
    assert [record["event"] for record in run.audit] == ["session.start", "session.end", "audit.seal"]


@pytest.mark.backend("namespaces", "broker")
def test_a_signal_to_the_supervisor_reaches_the_command(netsandbox: Any) -> None:
    script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    running = netsandbox.spawn("run", "--", "sh", "-c", script)
    running.read_until(b"ready")
    running.signal(signal.SIGTERM)
    running.read_until(b"caught")
    assert running.wait() == 9


@pytest.mark.backend("namespaces", "broker")
def test_nothing_is_left_behind(netsandbox: Any, leftovers: Any) -> None:
    """INV-10: the processes and namespaces of a session end with it."""
    running = netsandbox.spawn("run", "--", "sh", "-c", "sleep 60 & echo ready; wait")
    running.read_until(b"ready")
    watch = leftovers.watch(running)
    running.process.kill()
    running.wait()
    watch.assert_gone()
