"""Every probe of the network can be tried: the program inside knows its attempt and takes its arguments."""

from __future__ import annotations

import inspect

import pytest

from netsandbox.doctor.inside.attempts import ATTEMPTS
from netsandbox.doctor.network_probes import network_probes
from netsandbox.doctor.probe import Absent, Probe
from netsandbox.doctor.scene import Scene
from netsandbox.system import IS_LINUX

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="builds a scene of Linux")


def probes() -> list[Probe | Absent]:
    with Scene() as scene:
        return network_probes(scene)


def test_every_probe_has_a_name_of_its_own() -> None:
    names = [probe.name for probe in probes()]
    assert names
    assert len(names) == len(set(names))


def test_the_program_inside_knows_every_attempt_and_takes_its_arguments() -> None:
    for probe in probes():
        if isinstance(probe, Probe):
            inspect.signature(ATTEMPTS[probe.attempt]).bind(**probe.arguments)
