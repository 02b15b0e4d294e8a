"""The whole profile: its text is known to the letter, and what is not about files and ports holds under every model.

After a change that is meant: run `tests/backends/seatbelt/profile/test_session_profile.py` with
`NETSANDBOX_WRITE_GOLDEN=1`, then read the difference as what it is, a change of what commands may do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from netsandbox_portmap import FAIL, REWIRE_DEVICE, REWIRE_PORT

from netsandbox.backends.seatbelt.profile import session_profile as module
from netsandbox.backends.seatbelt.profile.mac_paths import RUN_BY_GIT
from netsandbox.backends.seatbelt.profile.profile_settings import (
    DOORS,
    NetworkSettings,
    OwnPaths,
    ProfileSettings,
)
from netsandbox.backends.seatbelt.profile.session_profile import session_profile
from netsandbox.backends.seatbelt.profile.switches import SWITCHES
from netsandbox.errors import UsageError
from tests.seatbelt_model.evaluator import allowed_under_all, denied_under_all
from tests.seatbelt_model.lint import lint
from tests.seatbelt_model.profile import Profile, load
from tests.seatbelt_model.request import Request, lookup

GOLDEN = Path(__file__).with_name("golden")
HOME, APP, STATE = "/Users/me", "/Users/me/src/app", "/Users/me/.local/state/netsandbox"
OWN = OwnPaths(hidden=(STATE,), sealed=("/opt/netsandbox",), port_map=f"{STATE}/sessions/1/ports")
FULL: dict[str, Any] = {"temporary": ("/private/var/folders/ab/cd/T",), "own": OWN, "terminal": "/dev/ttys003"}


def doors(strategy: str) -> NetworkSettings:
    return NetworkSettings(DOORS, 21001, 21002, 21003, strategy, 20000, 3, (5432,), (f"{HOME}/run/engine.sock",))


CASES = {
    "least": ProfileSettings(APP, HOME, switches=()),
    "fail": ProfileSettings(APP, HOME, network=doors(FAIL), **FULL),
    "rewire-device": ProfileSettings(APP, HOME, network=doors(REWIRE_DEVICE), **FULL),
    "rewire-port": ProfileSettings(APP, HOME, network=doors(REWIRE_PORT), switches=SWITCHES, **FULL),
    "paths": ProfileSettings(
        f'{HOME}/src/a "b" \\c) caf\u00e9',
        HOME,
        read=(f"{HOME}/b", f"{HOME}/a", f"{HOME}/b"),
        write=(f"{HOME}/w",),
        deny=(f"{HOME}/w/no",),
        executables=(f"{HOME}/bin",),
        links=("/private/tmp/link",),
    ),
    "readable": ProfileSettings(APP, HOME, mode="readable", network=doors(FAIL), **FULL),
    "open": ProfileSettings(APP, HOME, mode="open", deny_write=((APP, "dist"),), network=doors(FAIL), **FULL),
    "project": ProfileSettings(
        f"{APP}/packages/one",
        HOME,
        projects=(APP,),
        write=(f"{APP}/.vscode", f"{APP}/.git/hooks/mine"),
        kept=tuple((APP, f".git/{name}") for name in RUN_BY_GIT),
        deny_write=((APP, "dist"),),
    ),
}


@pytest.mark.attack(137)
@pytest.mark.parametrize("name", CASES)
def test_the_text_is_the_one_that_was_read_and_agreed_to(name: str) -> None:
    text = session_profile(CASES[name])
    golden = GOLDEN / f"{name}.sb"
    if os.environ.get("NETSANDBOX_WRITE_GOLDEN"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


@pytest.mark.parametrize("name", CASES)
def test_it_loads_without_a_fault_and_lint_finds_no_error(name: str) -> None:
    judged = load(session_profile(CASES[name]))
    assert judged.faults == ()
    assert [finding for finding in lint(judged) if finding.severity == "error"] == []


@pytest.mark.attack(137)
def test_it_begins_closed_and_takes_nothing_from_outside() -> None:
    text = session_profile(CASES["fail"])
    forms = [line for line in text.splitlines() if line and not line.startswith(";")]
    assert forms[:2] == ["(version 1)", "(deny default)"]
    for word in ("(import", "(param", "allow default", "no-sandbox", '"*'):
        assert word not in text, word


def test_the_order_in_which_paths_and_switches_are_given_does_not_matter() -> None:
    one = ProfileSettings(APP, HOME, read=("/a", "/b", "/a"), switches=("trustd", "fsevents"))
    other = ProfileSettings(APP, HOME, read=("/b", "/a"), switches=("fsevents", "trustd", "trustd"))
    assert session_profile(one) == session_profile(other)


def test_every_fixed_part_is_used_and_says_why() -> None:
    folder = Path(module.__file__).parent
    everything = {**CASES, "quiet": ProfileSettings(APP, HOME, switches=("tool-caches",))}
    texts = "".join(session_profile(settings) for settings in everything.values())
    files = sorted(folder.rglob("*.sbpl"))
    assert len(files) > 10
    for path in files:
        text = path.read_text("utf-8")
        assert text.strip("\n") in texts, path.name
        for block in text.strip("\n").split("\n\n"):
            assert block.startswith("; "), block


@pytest.fixture(scope="module")
def judged() -> Profile:
    return load(session_profile(CASES["fail"]))


def target(operation: str, whose: str) -> Request:
    return Request(operation, attributes={"target": whose})


@pytest.mark.parametrize("operation", ["signal", "process-info-pidinfo", "mach-priv-task-port"])
def test_processes_meet_their_own_session_only(judged: Profile, operation: str) -> None:
    assert allowed_under_all(judged, target(operation, "same-sandbox"))
    assert allowed_under_all(judged, target(operation, "self"))
    assert denied_under_all(judged, target(operation, "others"))
    assert denied_under_all(judged, target(operation, "pgrp"))


def test_without_debugging_no_process_is_taken_over() -> None:
    quiet = load(session_profile(CASES["least"]))
    for whose in ("self", "same-sandbox", "others"):
        assert denied_under_all(quiet, target("mach-priv-task-port", whose))
    assert denied_under_all(quiet, target("mach-task-name", "same-sandbox"))


@pytest.mark.attack(138)
@pytest.mark.attack(72)
@pytest.mark.parametrize(
    "service",
    [
        "com.apple.dnssd.service",
        "com.apple.mDNSResponder",
        "com.apple.coreservices.launchservicesd",
        "com.apple.secd",
        "com.apple.SecurityServer",
        "com.apple.pasteboard.1",
        "com.apple.coreservices.appleevents",
        "com.apple.tccd",
        "com.apple.trustd.agent",
        "com.apple.FSEvents",
        "com.apple.SystemConfiguration.configd",
        "com.example.any",
    ],
)
def test_services_that_act_outside_are_not_asked(judged: Profile, service: str) -> None:
    assert denied_under_all(judged, lookup(service))


@pytest.mark.parametrize("name", ["com.apple.system.opendirectoryd.libinfo", "com.apple.logd"])
def test_services_that_every_program_needs_are(judged: Profile, name: str) -> None:
    assert allowed_under_all(judged, lookup(name))


@pytest.mark.parametrize(
    ("switch", "service"),
    [
        ("trustd", "com.apple.trustd.agent"),
        ("fsevents", "com.apple.FSEvents"),
        ("configd", "com.apple.SystemConfiguration.configd"),
    ],
)
def test_a_switch_opens_its_service_and_no_other(switch: str, service: str) -> None:
    with_it = load(session_profile(ProfileSettings(APP, HOME, switches=(switch,))))
    assert allowed_under_all(with_it, lookup(service))
    for other in ("com.apple.dnssd.service", "com.apple.trustd", "com.apple.FSEvents2", "com.apple.nsurlsessiond"):
        assert denied_under_all(with_it, lookup(other))


def test_shared_memory_is_open_with_its_switch_only(judged: Profile) -> None:
    request = Request("ipc-posix-shm-write-create", attributes={"ipc-posix-name": "/x"})
    assert denied_under_all(judged, request)
    assert allowed_under_all(load(session_profile(CASES["rewire-port"])), request)


def test_an_unknown_switch_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown switch 'trust'; use configd, debug, fsevents"):
        session_profile(ProfileSettings(APP, HOME, switches=("trust",)))


@pytest.mark.attack(153)
@pytest.mark.parametrize("name", ["kern.procargs2", "kern.procargs2.1", "kern.proc.all", "kern.anything"])
def test_the_environment_of_other_programs_is_not_read(judged: Profile, name: str) -> None:
    assert denied_under_all(judged, Request("sysctl-read", attributes={"sysctl-name": name}))


@pytest.mark.parametrize("name", ["hw.ncpu", "kern.osrelease", "net.routetable.0.0.3.0", "hw.optional.arm.FEAT_X"])
def test_facts_about_the_machine_are(judged: Profile, name: str) -> None:
    assert allowed_under_all(judged, Request("sysctl-read", attributes={"sysctl-name": name}))


@pytest.mark.parametrize(
    "operation",
    [
        "appleevent-send",
        "job-creation",
        "lsopen",
        "sysctl-write",
        "system-socket",
        "iokit-open-user-client",
        "nvram-set",
        "mach-register",
        "system-kext-load",
        "file-mknod",
        "file-mount",
        "device-microphone",
        "system-set-time",
    ],
)
def test_what_no_build_needs_is_closed(judged: Profile, operation: str) -> None:
    names = {"sysctl-name": "kern.hostname", "global-name": "x", "socket-domain": "AF_SYSTEM"}
    assert denied_under_all(judged, Request(operation, path="/Users/me/src/app/x", attributes=names))


def test_making_a_profile_imports_nothing_slow() -> None:
    """It is made before the command starts, where each millisecond counts."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from netsandbox.backends.seatbelt.profile.session_profile import session_profile\n"
        "from netsandbox.backends.seatbelt.profile.profile_settings import ProfileSettings\n"
        f"session_profile(ProfileSettings({APP!r}, {HOME!r}))\n"
        "print(' '.join(sorted(name for name in set(sys.modules) - before if not name.startswith('netsandbox'))))"
    )
    root = Path(module.__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={"PYTHONPATH": str(root / "portmap")},
        timeout=30,
    )
    slow = {"re", "enum", "dataclasses", "typing", "functools", "ipaddress", "json", "pathlib", "ctypes"}
    assert slow.isdisjoint(done.stdout.split())
