"""Signals and exit statuses are the command's (INV-9): what is sent to netsandbox reaches it, what ends it shows."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

RESERVED_FILES, FEW_FILES = 512, 2048  # docs/platform-linux.md
FORWARDED = ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"]
GLIBC_OWN = 0b11 << 31  # signals 32 and 33: glibc's posix_spawn leaves them ignored and its threads set them anew


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("name", FORWARDED)
def test_a_signal_to_the_supervisor_alone_reaches_the_command(spawn: Any, name: str) -> None:
    running = spawn(
        "run", "--", "bash", "-c", f"trap 'echo caught; exit 9' {name}; echo ready; while :; do sleep 0.02; done"
    )
    running.read_until(b"ready")
    running.signal(signal.Signals[f"SIG{name}"])
    running.read_until(b"caught")
    assert running.wait() == 9


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("name", FORWARDED)
def test_a_signal_that_ends_the_command_ends_netsandbox_by_the_same_signal(spawn: Any, name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    running = spawn("run", "--", "sh", "-c", "ulimit -c 0; echo ready; exec sleep 60")
    running.read_until(b"ready")
    running.signal(number)
    assert running.wait(20) == -number
    assert running.process.stderr.read() == b""


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.parametrize("name", ["KILL", "SEGV", "ABRT", "PIPE", "ALRM", "TERM", "INT", "BUS", "XCPU"])
def test_a_command_that_dies_of_a_signal_shows_it(netsandbox: Any, name: str) -> None:
    run = netsandbox("run", "--", "sh", "-c", f"ulimit -c 0; kill -{name} $$")
    assert run.returncode == -signal.Signals[f"SIG{name}"]
    assert run.stderr == ""
    end = run.events("session.end")
    assert [record["status"] for record in end] == [128 + signal.Signals[f"SIG{name}"]]


@pytest.mark.backend("namespaces", "broker")
def test_a_core_limit_and_others_are_inherited(netsandbox: Any) -> None:
    """Limits are the caller's, but for the descriptors that stay with PID 1 where there are many."""
    limits = [resource.getrlimit(kind) for kind in (resource.RLIMIT_CORE, resource.RLIMIT_NPROC)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard -= RESERVED_FILES if hard > FEW_FILES else 0
    script = (
        "import resource as r\nfor kind in (r.RLIMIT_CORE, r.RLIMIT_NPROC, r.RLIMIT_NOFILE): print(r.getrlimit(kind))"
    )
    run = netsandbox("run", "--", netsandbox.python, "-c", script)
    assert run.stdout.splitlines() == [str(limit) for limit in (*limits, (min(soft, hard), hard))]


@pytest.mark.parametrize("wrapper", [[], ["nohup"]], ids=["plain", "nohup"])
def test_ignored_and_blocked_signals_are_inherited_as_they_are(netsandbox: Any, wrapper: list[str]) -> None:
    """Python ignores SIGPIPE for itself; nothing of that may reach the command, and nohup must."""
    home = netsandbox.home()
    show = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    outside = _run(home, [*wrapper, *show])
    inside = _run(home, [*wrapper, home.identity.python, "-m", "netsandbox", "run", "--", *show])
    assert inside == outside
    assert outside["SigIgn"] & 1 == bool(wrapper)


def _run(home: Any, command: list[str]) -> dict[str, int]:
    done = subprocess.run(
        command, env=home.environment(None), cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, check=True,
        **home.identity.popen,
    )  # fmt: skip
    lines = [line.split(":") for line in done.stdout.decode().splitlines()]
    return {name: int(value, 16) & ~GLIBC_OWN for name, value in lines}


def test_a_hangup_that_is_ignored_ends_nothing(netsandbox: Any) -> None:
    home = netsandbox.home()
    script = "echo ready; read line; echo got=$line"
    command = ["nohup", home.identity.python, "-m", "netsandbox", "run", "--", "sh", "-c", script]
    with subprocess.Popen(
        command, env=home.environment(None), cwd=home.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True, **home.identity.popen,
    ) as running:  # fmt: skip
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        os.killpg(running.pid, signal.SIGHUP)
        out, _ = running.communicate(b"hello\n", timeout=60)
    assert (out, running.returncode) == (b"got=hello\n", 0)


@pytest.mark.backend("namespaces", "broker")
def test_a_command_that_ignores_a_signal_goes_on(spawn: Any) -> None:
    script = "trap '' TERM; echo ready; read line; echo got=$line; exit 6"
    running = spawn("run", "--", "sh", "-c", script, stdin=subprocess.PIPE)
    running.read_until(b"ready")
    for _ in range(3):
        running.signal(signal.SIGTERM)
    running.process.stdin.write(b"hello\n")
    running.process.stdin.flush()
    running.read_until(b"got=hello")
    assert running.wait() == 6


@pytest.mark.backend("namespaces", "broker")
def test_a_signal_to_the_group_reaches_the_command_once(spawn: Any) -> None:
    """What timeout(1) and a supervisor of services send; many programs take a second one for impatience."""
    traps = "n=0; trap 'n=$((n+1)); echo $n' TERM; trap 'echo caught=$n; exit 9' USR1"
    script = f"{traps}; echo ready; while :; do sleep 0.02; done"
    running = spawn("run", "--", "bash", "-c", script)
    running.read_until(b"ready")
    os.killpg(running.pid, signal.SIGTERM)
    running.read_until(b"1\n")
    time.sleep(0.4)
    running.signal(signal.SIGUSR1)
    running.read_until(b"caught=1")
    assert running.wait(20) == 9


@pytest.mark.backend("namespaces", "broker")
def test_a_signal_to_the_group_reaches_a_command_that_left_it(spawn: Any) -> None:
    script = "import os, signal; os.setpgid(0, 0); print('ready', flush=True); signal.pause()"
    running = spawn("run", "--", "python3", "-I", "-c", script)
    running.read_until(b"ready")
    os.killpg(running.pid, signal.SIGTERM)
    assert running.wait(20) == -signal.SIGTERM


@pytest.mark.backend("namespaces", "broker")
@pytest.mark.attack(170)
def test_a_process_of_the_session_cannot_signal_the_supervisor_or_the_host(netsandbox: Any) -> None:
    """kill(-1) and every PID there is; only the session's own processes are in reach."""
    witness = subprocess.Popen(["sleep", "600"], env=netsandbox.home().environment(None), **netsandbox.identity.popen)
    script = f"trap '' TERM; kill -TERM -1; kill -KILL {witness.pid} 2>/dev/null; kill -KILL 1; exit 8"
    try:
        assert netsandbox("run", "--", "sh", "-c", script).returncode == 8
        assert witness.poll() is None
    finally:
        witness.kill()
        witness.wait()
