"""Sandboxed commands in an event loop: nothing blocks it, and no session is left behind."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

import netsandbox
from netsandbox import Policy, Sandbox
from netsandbox.errors import CommandError

pytestmark = pytest.mark.usefixtures("user_namespaces")


@pytest.fixture
def box() -> Sandbox:
    return Sandbox(Policy())


async def test_several_run_at_once(box: Sandbox) -> None:
    """Each waits for the others' files, so one after another would wait for ever."""
    script = "touch $1; while ! [ -e 0 -a -e 1 -a -e 2 ]; do sleep 0.01; done; printf $1; exit $1"
    commands = [["sh", "-c", script, "-", str(number)] for number in range(3)]
    results = await asyncio.gather(*(box.arun(command, capture_output=True, text=True) for command in commands))
    assert [(each.returncode, each.stdout) for each in results] == [(0, "0"), (1, "1"), (2, "2")]
    assert len({each.session for each in results}) == 3


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["cat"], {"input": "a\r\nb", "text": True, "capture_output": True}),
        (["cat"], {"input": b"\xff" * 3_000_000, "capture_output": True}),
        (["sh", "-c", "printf '\\377'; printf 2 >&2; exit 5"], {"capture_output": True, "errors": "replace"}),
        (["sh", "-c", "kill -9 $$"], {}),
    ],
    ids=["text", "bytes", "errors", "signal"],
)
async def test_results_are_those_of_subprocess(box: Sandbox, command: Any, options: dict[str, Any]) -> None:
    ours, theirs = await box.arun(command, **options), subprocess.run(command, **options)  # noqa: PLW1510
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


async def test_a_time_limit_keeps_the_output_and_what_was_refused(box: Sandbox) -> None:
    command = ["sh", "-c", "getent hosts denied.test; echo so far; sleep 600"]
    with pytest.raises(netsandbox.TimeoutExpired) as caught:
        await box.arun(command, capture_output=True, timeout=2)
    assert caught.value.output == b"so far\n"
    assert caught.value.outcome is not None
    assert [denial.host for denial in caught.value.outcome.denied] == ["denied.test"]
    assert "denied denied.test" in str(caught.value)


async def test_a_cancelled_task_ends_its_session(box: Sandbox, tmp_path: Path) -> None:
    task = asyncio.ensure_future(box.arun(["sh", "-c", "touch started; sleep 600; touch ended"]))
    while not (tmp_path / "app/started").exists():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    logs = list((tmp_path / "state").rglob("audit.jsonl"))
    assert ["audit.seal" in log.read_text() for log in logs] == [True]


async def test_errors_are_raised(box: Sandbox) -> None:
    with pytest.raises(CommandError):
        await box.arun(["no-such-command"])
    with pytest.raises(FileNotFoundError):
        await box.apopen(["true"], cwd="missing")
    with pytest.raises(subprocess.CalledProcessError):
        await box.arun(["false"], check=True)


async def test_a_running_command_is_talked_to_and_ended_with_the_block(box: Sandbox) -> None:
    async with await box.apopen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"line\n")
        assert await process.stdout.readline() == b"line\n"
        assert process.outcome is None
        with pytest.raises(ValueError, match="not passed on"):
            process.send_signal(23)
    assert process.returncode == -9
    assert process.outcome is not None
    assert (process.outcome.session, process.outcome.audit_log) == (process.session, process.audit_log)


async def test_a_signal_reaches_the_command(box: Sandbox) -> None:
    script = "trap 'exit 4' TERM; echo; sleep 60 & wait"
    process = await box.apopen(["sh", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    process.terminate()
    assert await process.wait() == 4
