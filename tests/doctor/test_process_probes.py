"""The probes on another process are tried in the order that leaves it alive, and report a leak without a session."""

from __future__ import annotations

import subprocess

from netsandbox.doctor.jail import prove
from netsandbox.doctor.judgement import LEAK
from netsandbox.doctor.process_probes import process_probes
from netsandbox.doctor.scene import Scene
from netsandbox.policy.policy import Policy


def without_session(scene: Scene, policy: Policy, command: list[str], output: int) -> str | None:
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, check=False, timeout=30)
    return None


def test_the_process_is_signalled_last() -> None:
    with Scene() as scene:
        assert [each.name for each in process_probes(scene)] == ["read-process", "trace-process", "signal-process"]


def test_without_a_session_the_process_is_read_and_ended() -> None:
    found = {each.probe: each.status for each in prove(run=without_session, probes=process_probes)}
    assert (found["read-process"], found["signal-process"]) == (LEAK, LEAK)
