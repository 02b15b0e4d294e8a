"""The doctor of a Mac, on Linux: probes that Landlock can keep hold, and a boundary that is none is found out."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netsandbox.backends.seatbelt.backend import SeatbeltBackend
from netsandbox.backends.seatbelt.mac_system import MacSystem
from netsandbox.backends.seatbelt.profile_inputs import ProfilePaths, SessionPorts, profile_text
from netsandbox.cli import doctor as command
from netsandbox.doctor import mac_probes
from netsandbox.doctor.check import OK as FINE
from netsandbox.doctor.check import Check
from netsandbox.doctor.examine import backend_report
from netsandbox.doctor.judgement import FAILED, LEAK, OK, SKIPPED
from netsandbox.doctor.mac_probes import mac_run_settings, prove_mac
from netsandbox.doctor.scene import Scene
from netsandbox.frozen import copy_with
from netsandbox.policy.policy import Policy
from netsandbox.session.session import Session
from netsandbox.settings import Command
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.profile import load
from tests.seatbelt_model.request import file

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="plays a Mac on Linux; test_backend_on_a_mac.py needs no play"),
    pytest.mark.usefixtures("place"),
]

HOME = "/Users/tester"  # as the fixture `place` has it
# Landlock, as it stands in for Seatbelt, knows the ports of TCP; by its nature it keeps a process from tracing others.
KEPT = {
    "control-name",
    "control-door",
    "control-program",
    "control-listen",
    "tcp-loopback",
    "mapped-loopback",
    "tcp-host",
    "mapped-host",
    "tcp-metadata",
    "tcp6-loopback",
    "tcp6-host",
    "tcp6-global",
    "door-connect",
    "door-connect-host",
    "door-socks5",
    "door-rebinding",
    "door-token",
    "dns-server-tcp",
    "dns-elsewhere-tcp",
    "name-service",
    "listen-elsewhere",
    "listen-everywhere",
    "kernel-socket",
    "trace-process",
    "descriptors",
    "write-home",
    "read-secrets",
}
# What any account does on any Linux when nothing holds it back, without a packet that leaves this machine.
OPEN = {
    "tcp-loopback",
    "udp-loopback",
    "mapped-loopback",
    "dns-server-udp",
    "dns-server-tcp",
    "unix-path",
    "unix-datagram",
    "unix-late",
    "listen-elsewhere",
    "listen-everywhere",
    "read-process",
    "trace-process",
    "signal-process",
    "signal-host",
    "descriptors",
    "write-log",
    "read-secrets",
    "write-home",
}
Run = Callable[[Scene, Policy, list[str], int], str | None]


def in_session(system: MacSystem, run_settings: Callable[[Scene], Any] = mac_run_settings) -> Run:
    def run(scene: Scene, policy: Policy, words: list[str], output: int) -> str | None:
        settings = copy_with(run_settings(scene), mode=policy.mode)
        owner = Session(settings, sealed=False, backend=lambda context: SeatbeltBackend(context, system))
        with contextlib.chdir(scene.work), open(os.devnull, "r+b") as nothing:
            stdio = (nothing.fileno(), output, output)
            owner.run(lambda: policy, Command(words, os.environb, stdio))
        return owner.log.path

    return run


def without_boundary(scene: Scene, policy: Policy, words: list[str], output: int) -> str | None:
    log = Path(scene.state, "sessions", "none", "audit.jsonl")
    log.parent.mkdir(parents=True)
    log.write_text("")
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, close_fds=False, check=False, timeout=60)
    return None


def statuses(*arguments: Any, **more: Any) -> dict[str, str]:
    return {each.probe: f"{each.status} {each.happened}" for each in prove_mac(*arguments, **more)}


def test_in_a_session_the_controls_are_reached_and_nothing_gets_out(
    system: MacSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/proc/home")  # nobody can make it, and the stand-in for Seatbelt holds ports only
    found = statuses(in_session(system), KEPT.__contains__, library=False)
    assert set(found) == KEPT
    assert {name: said for name, said in found.items() if said.split()[0] not in (OK, SKIPPED)} == {}
    assert [name for name in found if name.startswith("control") and not found[name].startswith(OK)] == [
        "control-program"
    ]


def test_a_python_in_the_home_directory_can_run_the_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing beside it is opened."""
    monkeypatch.setattr(sys, "base_prefix", f"{HOME}/tools/python")
    with Scene() as scene:
        settings = mac_run_settings(scene)
    ports = SessionPorts("fail", 20000, 4, 0, 0, 0)
    text = profile_text(
        Policy(), settings, Command(["true"], os.environb, (0, 1, 2)), ports, ProfilePaths("/nowhere", "")
    )
    profile = load(text)
    for name in ("lib/os.py", "bin/python3"):
        assert allowed_under_all(profile, file("file-read-data", f"{HOME}/tools/python/{name}"))
    assert allowed_under_all(profile, file("process-exec*", f"{HOME}/tools/python/bin/python3"))
    assert denied_under_all(profile, file("file-read-data", f"{HOME}/tools/other"))
    assert denied_under_all(profile, file("file-write-data", f"{HOME}/tools/python/lib/os.py"))


def test_without_a_boundary_the_same_probes_report_leaks(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: they can fail."""
    (place / "home" / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place / "home"))
    found = statuses(without_boundary, OPEN.__contains__, library=True)
    assert {name: said for name, said in found.items() if said.split()[0] != LEAK} == {}
    assert set(found) == OPEN
    assert [path.name for path in (place / "home").iterdir()] == [".ssh"]


def test_without_a_door_the_controls_fail(system: MacSystem) -> None:
    """Silence alone is no proof."""

    def closed(scene: Scene, policy: Policy, words: list[str], output: int) -> str | None:
        return in_session(system)(scene, Policy(), words, output)

    wanted = {"control-name", "control-door", "control-program", "door-connect"}
    found = statuses(closed, wanted.__contains__, library=True)
    assert {name: said.split()[0] for name, said in found.items()} == {
        "control-name": FAILED,
        "control-door": FAILED,
        "control-program": FAILED,
        "door-connect": OK,
    }


def test_the_command_reports_what_got_out_and_fails(
    system: MacSystem, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`netsandbox doctor` on a Mac whose Seatbelt is not asked: LEAK, and exit status 1."""
    monkeypatch.setattr("netsandbox.doctor.examine.DEFAULT_BACKEND", "seatbelt")
    monkeypatch.setattr("netsandbox.backends.seatbelt.mac_system.this_mac", lambda: system)
    monkeypatch.setattr("netsandbox.doctor.mac_checks.checks", lambda *_: [Check("macOS", FINE, "macOS 15")])
    monkeypatch.setattr(
        mac_probes,
        "prove_mac",
        lambda library: prove_mac(without_boundary, {"tcp-loopback", "unix-path"}.__contains__, library=library),
    )
    assert command.main([]) == 1
    text = capsys.readouterr().out
    assert "THE JAIL LEAKS: 2 probes got out" in text
    assert "the canary received 1" in text


def test_a_profile_that_enforces_nothing_is_found_by_the_session_itself(
    system: MacSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The self-test is before the probes: no probe runs, and the report says why."""
    monkeypatch.setattr("netsandbox.backends.seatbelt.backend.profile_text", lambda *_, **__: "; hollow")
    report = backend_report(
        "seatbelt",
        [Check("macOS", FINE, "macOS 15")],
        lambda: prove_mac(in_session(system), KEPT.__contains__, library=False),
    )
    assert not report.ok
    assert report.jail == []
    assert "accepted and does not hold" in (report.unproven or "")
