"""Each requirement of the broker backend is read from files, and each reason ends with what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.backends.broker import requirements
from netsandbox.backends.broker.requirements import loopback, missing, routed_devices

CONF = "proc/sys/net/ipv4/conf"
WELL = {
    "proc/sys/kernel/osrelease": "6.8.0-31-generic",
    "proc/sys/kernel/seccomp/actions_avail": "kill_process trap errno user_notif allow",
    "sys/kernel/security/lsm": "lockdown,capability,landlock,yama,apparmor",
    "proc/sys/kernel/yama/ptrace_scope": "1",
    f"{CONF}/all/route_localnet": "0",
    f"{CONF}/lo/route_localnet": "0",
    "proc/self/status": "Name:\tx\nCapEff:\t0000000000000000\nSeccomp:\t2\n",
}
ROOT_STATUS = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n"


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETSANDBOX_SESSION", raising=False)


def written(tmp_path: Path, files: dict[str, str | None]) -> str:
    for name, text in {**WELL, **files}.items():
        if text is not None:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{text}\n")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, None),
        ({"proc/sys/kernel/osrelease": "5.14.0-503.el9"}, None),
        ({"proc/sys/kernel/osrelease": "5.13.19"}, "use Linux 5.14 or newer"),
        ({"proc/sys/kernel/seccomp/actions_avail": "kill trap allow"}, "CONFIG_SECCOMP_FILTER, Linux 5.14 or newer"),
        ({"sys/kernel/security/lsm": "capability,yama"}, "start the kernel with lsm=landlock,capability,yama"),
        ({"sys/kernel/security/lsm": None}, None),
        ({"proc/sys/kernel/yama/ptrace_scope": None}, None),
        ({"proc/sys/kernel/yama/ptrace_scope": "2"}, "as root run `sysctl -w kernel.yama.ptrace_scope=1`"),
        ({"proc/sys/kernel/yama/ptrace_scope": "2", "proc/self/status": ROOT_STATUS}, None),
        ({"proc/sys/kernel/yama/ptrace_scope": "3", "proc/self/status": ROOT_STATUS}, "reboot"),
    ],
)
def test_a_reason_ends_with_what_to_do(tmp_path: Path, files: dict[str, str | None], reason: str | None) -> None:
    found = missing(written(tmp_path, files))
    assert len(found) == (reason is not None), found
    assert reason is None or found[0].endswith(reason)
    assert all("\n" not in line and "; " in line for line in found)


@pytest.mark.parametrize("device", ["all", "lo"])
def test_routes_of_the_loopback_are_left_to_the_helper(tmp_path: Path, device: str) -> None:
    root = written(tmp_path, {f"{CONF}/{device}/route_localnet": "1"})
    assert missing(root) == []
    reason = loopback(root)
    assert reason is not None
    assert reason.endswith(f"as root run `sysctl -w net.ipv4.conf.{device}.route_localnet=0`")
    assert loopback(written(tmp_path, {})) is None


def test_all_reasons_are_named_in_order(tmp_path: Path) -> None:
    files = {"proc/sys/kernel/osrelease": "4.19", "proc/sys/kernel/yama/ptrace_scope": "3"}
    assert [reason.split()[0] for reason in missing(written(tmp_path, files))] == [
        "Linux",
        "kernel.yama.ptrace_scope=3",
    ]


def test_a_session_around_this_process_has_the_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETSANDBOX_SESSION", "0123")
    (found,) = missing(written(tmp_path, {}))
    assert found.endswith("run netsandbox outside of it")
    assert missing(written(tmp_path, {"proc/self/status": ROOT_STATUS})) == [], "the variable alone says nothing"


def test_another_device_that_routes_the_loopback_is_no_reason_to_refuse(tmp_path: Path) -> None:
    root = written(tmp_path, {f"{CONF}/docker0/route_localnet": "1", f"{CONF}/eth0/route_localnet": "0"})
    assert (missing(root), routed_devices(root)) == ([], ["docker0"])


def test_a_machine_without_these_files_lacks_nothing_that_can_be_seen(tmp_path: Path) -> None:
    assert missing(str(tmp_path)) == []
    assert routed_devices(str(tmp_path)) == []


def test_the_launcher_pays_little_for_the_list() -> None:
    heavy = "ctypes re json dataclasses typing enum socket struct contextlib".split()  # noqa: SIM905 (a row of names)
    code = (
        f"import {requirements.__name__} as it; it.missing(); print([name for name in {heavy} if name in sys.modules])"
    )
    line = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == "[]\n"
