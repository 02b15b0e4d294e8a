"""Proves the jail: runs the probe program in one real session under a strict policy and judges the results."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from netsandbox_portmap.localhost_settings import LocalhostSettings

from netsandbox.api.sandbox import Sandbox
from netsandbox.audit.reader import read_records
from netsandbox.doctor.judgement import FAILED, SKIPPED, Answer
from netsandbox.doctor.linux_probes import boundary_probes
from netsandbox.doctor.network_probes import network_probes
from netsandbox.doctor.probe import Absent, Evidence, Probe
from netsandbox.doctor.scene import CONTROL_NAME, REBOUND_NAME, Scene
from netsandbox.errors import HostError
from netsandbox.frozen import frozen
from netsandbox.policy.file_rules import OPEN, FileRules
from netsandbox.policy.policy import Policy
from netsandbox.settings import RunSettings

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside", "__main__.py")
Probes = list[Probe | Absent]


@frozen
class Finding:
    """One row: the attempt, the required result, the actual result, and the status."""

    probe: str
    expected: str
    happened: str
    status: str


def strict_policy(scene: Scene, chosen: Probes) -> Policy:
    """The policy allows the two controls and one name that leads to a private address; everything else must be
    refused."""
    rebound = [each.arguments["port"] for each in chosen if isinstance(each, Probe) and each.name == "door-rebinding"]
    return Policy(
        allow_domains=[f"{CONTROL_NAME}:{scene.by_name.port}", *(f"{REBOUND_NAME}:{port}" for port in rebound)],
        allow_addresses=[f"127.0.0.1:{scene.by_name.port}", f"127.0.0.1:{scene.by_door.port}"],
    )


def run_settings(
    scene: Scene,
    localhost: LocalhostSettings | None = None,
    files: FileRules | None = None,
    backend: str | None = None,
) -> RunSettings:
    """Files are open: what is hidden would prove nothing about the network."""
    upstream = ((scene.upstream.address, scene.upstream.port),)
    return RunSettings(
        upstream_dns=upstream,
        name="doctor",
        localhost=localhost or LocalhostSettings(),
        files=files or FileRules(mode=OPEN),
        own_command=True,
        backend=backend,
    )


def run_in_session(
    scene: Scene, policy: Policy, command: list[str], output: int, backend: str | None = None
) -> str | None:
    """The path of the session's log."""
    return run_with(run_settings(scene, backend=backend), policy, command, output)


def run_with(settings: RunSettings, policy: Policy, command: list[str], output: int) -> str | None:
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        with Sandbox(policy, settings) as box:
            return box.run(command, stdin=nothing, stdout=output, stderr=output).audit_log
    finally:
        os.close(nothing)


def linux_probes(scene: Scene) -> Probes:
    return [*network_probes(scene), *boundary_probes(scene)]


def prove(
    policy_of: Callable[[Scene, Probes], Policy] = strict_policy,
    run: Callable[[Scene, Policy, list[str], int], str | None] = run_in_session,
    wanted: Callable[[str], bool] = lambda name: True,
    probes: Callable[[Scene], Probes] = linux_probes,
    python: str = sys.executable,
) -> list[Finding]:
    """Every finding, in the order of the probes. Raises `NetsandboxError` if no session can be created."""
    with Scene() as scene:
        chosen = [each for each in probes(scene) if wanted(each.name)]
        requests = [
            {"probe": each.name, "attempt": each.attempt, "arguments": each.arguments}
            for each in chosen
            if isinstance(each, Probe)
        ]
        command = [python, "-I", "-S", PROGRAM, json.dumps(requests)]
        with tempfile.TemporaryFile(dir=scene.directory) as output:
            log = run(scene, policy_of(scene, chosen), command, output.fileno())
            printed = _content(output.fileno())
        answers = read_answers(printed)
        if not answers:
            raise HostError(f"the probe program did not run: {_last_line(printed)}; is {python} readable inside?")
        records = list(read_records(log)) if log is not None else []
        return [_finding(each, Evidence(answers.get(each.name), records, log)) for each in chosen]


def read_answers(data: bytes) -> dict[str, Answer]:
    """The output of the probe program; other lines are skipped."""
    answers = {}
    for line in data.splitlines():
        try:
            answer: dict[str, Any] = json.loads(line)
            answers[str(answer["probe"])] = Answer(bool(answer["succeeded"]), str(answer["detail"]))
        except (ValueError, TypeError, KeyError):
            continue
    return answers


def _last_line(data: bytes) -> str:
    return (data.decode("utf-8", "replace").strip().splitlines() or ["it printed nothing"])[-1]


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _finding(each: Probe | Absent, evidence: Evidence) -> Finding:
    if isinstance(each, Absent):
        return Finding(each.name, each.expected, each.why, SKIPPED)
    try:
        judged = each.judge(evidence)
    except Exception as error:  # a probe that cannot be judged proves nothing (INV-1)
        return Finding(each.name, each.expected, f"cannot be judged: {error!r}", FAILED)
    return Finding(each.name, each.expected, judged.happened, judged.status)
