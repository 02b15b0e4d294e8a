"""What the backend `broker` cannot keep by design is a note, and nothing else is; the rest holds in real sessions."""

from __future__ import annotations

import pytest

from netsandbox.doctor.broker_probes import noted, prove_broker
from netsandbox.doctor.jail import Finding
from netsandbox.doctor.judgement import FAILED, LEAK, NOTE, OK, SKIPPED
from netsandbox.system import IS_LINUX

WEAKER = {"namespaces", "host-processes"}


@pytest.mark.parametrize(
    ("probe", "happened", "status", "then"),
    [
        ("namespaces", "the host's own: user, net", LEAK, NOTE),
        ("namespaces", "none is the host's", OK, OK),
        ("namespaces", "cannot be judged", FAILED, FAILED),
        ("namespaces", "something else", LEAK, LEAK),
        ("host-processes", "100 others in /proc", LEAK, NOTE),
        ("write-hook", "the host's file was changed", LEAK, LEAK),
        ("write-home", "the host's file was changed", LEAK, LEAK),
        ("capabilities", "not empty: CapBnd", LEAK, NOTE),
        ("capabilities", "not empty: CapEff, CapBnd", LEAK, LEAK),
        ("capabilities", "not empty: CapBnd, CapAmb", LEAK, LEAK),
        ("tcp-loopback", "the canary received 1", LEAK, LEAK),
        ("unix-own", "the canary received 1", LEAK, LEAK),
    ],
)
def test_only_what_the_design_gives_up_is_a_note(probe: str, happened: str, status: str, then: str) -> None:
    finding = Finding(probe, "x", happened, status)
    assert noted(finding).status == then
    assert (noted(finding) == finding) is (then == status)


@pytest.mark.backend("broker")
@pytest.mark.attack(112)
@pytest.mark.attack(121)
@pytest.mark.attack(123)
@pytest.mark.skipif(not IS_LINUX, reason="a session of Linux")
def test_every_other_probe_holds_in_a_session() -> None:
    """INV-7, INV-8, INV-12: tried by programs that know nothing of the sandbox, judged by what arrived outside."""
    found = {each.probe: each for each in prove_broker()}
    assert {name for name, each in found.items() if each.status == NOTE} - {"capabilities"} == WEAKER
    assert [each for each in found.values() if each.status not in (OK, SKIPPED, NOTE)] == []
    assert {"read-process", "trace-process", "signal-process", "unix-own", "tcp-loopback", "read-home"} <= set(found)
