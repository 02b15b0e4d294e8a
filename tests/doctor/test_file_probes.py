"""The probes of files hold in a real session, and each of them fails without one."""

from __future__ import annotations

import inspect
import os
import subprocess
import threading

import pytest

from netsandbox.doctor.file_probes import _home, _replace_secret, file_probes, run_closed
from netsandbox.doctor.inside.attempts import ATTEMPTS
from netsandbox.doctor.jail import prove
from netsandbox.doctor.judgement import FAILED, LEAK, OK
from netsandbox.doctor.probe import Absent, Probe
from netsandbox.doctor.scene import Scene
from netsandbox.policy.policy import Policy
from netsandbox.system import IS_LINUX

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="builds a scene of Linux")


def findings(run: object = run_closed) -> dict[str, str]:
    found = prove(lambda scene, chosen: Policy(), run, probes=file_probes)  # type: ignore[arg-type]
    return {each.probe: each.status for each in found if (each.probe, each.status) != ("device", "skipped")}


def without_session(scene: Scene, policy: Policy, command: list[str], output: int) -> str | None:
    ended = threading.Event()
    host = threading.Thread(target=_replace_secret, args=(scene, ended))
    host.start()
    subprocess.run(command, stdout=output, check=True)
    ended.set()
    host.join()
    return None


def test_the_program_inside_knows_every_attempt_and_takes_its_arguments() -> None:
    with Scene() as scene:
        for probe in file_probes(scene):
            if probe.name == "device" and isinstance(probe, Absent):
                continue
            assert isinstance(probe, Probe)
            inspect.signature(ATTEMPTS[probe.attempt]).bind(**probe.arguments)
        assert os.path.isdir(_home(scene))


@pytest.mark.attack(214)
@pytest.mark.attack(216)
@pytest.mark.usefixtures("user_namespaces")
def test_every_probe_holds_in_a_session() -> None:
    home, here = os.environ.get("HOME"), os.getcwd()
    found = findings()
    assert set(found.values()) == {OK}, found
    assert (os.environ.get("HOME"), os.getcwd()) == (home, here)


def test_every_probe_but_the_control_leaks_without_a_session() -> None:
    found = findings(without_session)
    assert found.pop("file-control") == OK
    assert found
    assert set(found.values()) == {LEAK}, found


@pytest.mark.usefixtures("user_namespaces")
def test_a_control_that_is_not_written_and_a_host_that_is_late_prove_nothing() -> None:
    def idle(scene: Scene, policy: Policy, command: list[str], output: int) -> str | None:
        lines = ["file-control", "read-replaced"]
        for name in lines:
            os.write(output, b'{"probe": "%s", "succeeded": false, "detail": "x"}\n' % name.encode())
        return None

    found = findings(idle)
    assert (found["file-control"], found["read-replaced"]) == (FAILED, FAILED)
