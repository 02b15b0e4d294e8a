"""The probes can fail: without a jail, or with a policy that lets them out, the same probes report the leak."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netsandbox.api.sandbox import Sandbox
from netsandbox.doctor import jail
from netsandbox.doctor.jail import prove, read_answers, strict_policy
from netsandbox.doctor.judgement import FAILED, LEAK, OK, Answer
from netsandbox.doctor.probe import Absent, Evidence, Probe
from netsandbox.doctor.scene import Scene
from netsandbox.errors import HostError
from netsandbox.policy.file_rules import OPEN, FileRules
from netsandbox.policy.policy import Policy
from netsandbox.runtime.written_folders import EVERYWHERE, is_written
from netsandbox.settings import RunSettings

# What any account reaches on any Linux when nothing holds it back. Not those that would send packets away from here.
UNJAILED = {
    "tcp-loopback",
    "udp-loopback",
    "mapped-loopback",
    "dns-server-udp",
    "dns-server-tcp",
    "unix-abstract",
    "unix-own",
    "unix-path",
    "unix-datagram",
    "unix-late",
    "namespaces",
    "host-processes",
    "signal-host",
    "descriptors",
    "write-log",
}


def without_jail(scene: Scene, policy: Policy, command: list[str], output: int) -> str | None:
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, close_fds=False, check=False, timeout=30)
    return None


@pytest.fixture
def own_group() -> Iterator[None]:
    """A process group of this process alone: other workers of this run may be counting the group's signals."""
    before = os.getpgid(0)
    if os.getsid(0) != os.getpid():  # a leader has a group already, and cannot leave it
        os.setpgid(0, 0)
    yield
    if os.getpgid(0) != before:
        os.setpgid(0, before)


@pytest.mark.usefixtures("own_group")
def test_without_a_jail_the_probes_report_leaks():
    findings = {each.probe: each.status for each in prove(run=without_jail, wanted=UNJAILED.__contains__)}
    assert findings == dict.fromkeys(UNJAILED, LEAK)


def lenient(scene: Scene, chosen: list[Probe | Absent]) -> Policy:
    """The strict policy, and a hole for each probe."""
    strict = strict_policy(scene, chosen)
    ports = [each.arguments["port"] for each in chosen if isinstance(each, Probe) and "door" in each.arguments]
    hosts = [each.arguments for each in chosen if isinstance(each, Probe) and each.name == "tcp-host"]
    addresses = [f"127.0.0.1:{port}" for port in ports] + [f"{each['host']}:{each['port']}" for each in hosts]
    return Policy(strict.allow_domains, (), [*strict.allow_addresses, *addresses], allow_query_types=["TXT"])


@pytest.mark.usefixtures("user_namespaces")
def test_a_policy_with_holes_is_found_out():
    holes = ("door-connect", "door-rebinding", "tcp-host", "dns-txt")
    wanted = (*holes, "tcp-loopback", "unix-path", "control-name")
    findings = {each.probe: each.status for each in prove(lenient, wanted=wanted.__contains__)}
    if findings["tcp-host"] == "skipped":
        findings["tcp-host"] = LEAK
    assert findings == {**dict.fromkeys(wanted, OK), **dict.fromkeys(holes, LEAK)}


@pytest.mark.usefixtures("user_namespaces")
def test_the_session_s_own_processes_are_no_leak():
    """Beside the probe there are the first process and the one that starts commands of `exec`."""
    assert [each.status for each in prove(wanted="host-processes".__eq__)] == [OK]


@pytest.mark.usefixtures("user_namespaces")
def test_what_the_probes_could_write_stays_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their session is open, and every toolchain that the user installs later would be distrusted."""
    monkeypatch.setenv("HOME", str(tmp_path))
    prove(wanted="control-name".__eq__)
    assert not is_written(EVERYWHERE)
    other = RunSettings(files=FileRules(mode=OPEN))
    with Sandbox(Policy(), other) as box:
        box.run(["true"])
    assert is_written(EVERYWHERE)


@pytest.mark.usefixtures("user_namespaces")
def test_a_policy_that_allows_nothing_fails_the_controls():
    """Silence alone is no proof: with every door shut the doctor does not say that all is well."""
    findings = prove(lambda scene, chosen: Policy(), wanted=lambda name: name.startswith("control"))
    assert {each.probe: each.status for each in findings} == {"control-name": FAILED, "control-door": FAILED}


def test_a_program_that_never_ran_is_an_error_and_not_silence():
    with pytest.raises(HostError, match="did not run"):
        prove(run=lambda scene, policy, command, output: None, wanted=lambda name: name == "tcp-loopback")


def test_a_probe_that_cannot_be_judged_is_not_proven():
    """INV-1."""

    def broken(evidence: Evidence) -> Any:
        raise ValueError("no")

    finding = jail._finding(Probe("x", "refused", "tcp", {}, broken), Evidence(Answer(succeeded=False, detail="")))
    assert finding.status == FAILED


@pytest.mark.parametrize("line", [b"", b"x", b"[]", b"3", b"{}", b'{"probe": "a"}', b"\xff", b"null"])
def test_a_line_that_is_no_answer_is_none(line):
    good = b'{"probe": "p", "succeeded": false, "detail": "EPERM"}'
    assert read_answers(line + b"\n" + good) == {"p": Answer(succeeded=False, detail="EPERM")}
