"""Every probe of a Mac can be tried: the program inside knows its attempt and takes its arguments."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from netsandbox.doctor.inside.attempts import ATTEMPTS
from netsandbox.doctor.mac_probes import mac_probes
from netsandbox.doctor.probe import Absent, Probe
from netsandbox.doctor.scene import Scene


@pytest.fixture(params=[True, False], ids=["library", "no library"])
def probes(request: pytest.FixtureRequest, tmp_path: Path) -> list[Probe | Absent]:
    with Scene() as scene:
        return mac_probes(scene, library=request.param, home=str(tmp_path))


def test_every_probe_has_a_name_of_its_own(probes: list[Probe | Absent]) -> None:
    names = [probe.name for probe in probes]
    assert names
    assert len(names) == len(set(names))


def test_the_program_inside_knows_every_attempt_and_takes_its_arguments(probes: list[Probe | Absent]) -> None:
    for probe in probes:
        if isinstance(probe, Probe):
            inspect.signature(ATTEMPTS[probe.attempt]).bind(**probe.arguments)
