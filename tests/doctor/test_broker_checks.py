"""The checks of the backend `broker`: what is missing has its remedy, what is weaker is a note."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import Any

import pytest

from netsandbox.backends.broker import requirements
from netsandbox.doctor import broker_checks
from netsandbox.doctor.check import MISSING, NOTE, OK
from netsandbox.doctor.linux_checks import trial
from netsandbox.system import IS_LINUX

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="tries a kernel of Linux")


def test_a_requirement_of_the_kernels_files_has_its_reason_and_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(requirements.LOOKS, "Yama", lambda root: "a; b is 2; as root run `sysctl -w b=1`")
    check = broker_checks.by_file("Yama")
    assert (check.status, check.found, check.remedy) == (MISSING, "a; b is 2", "as root run `sysctl -w b=1`")
    monkeypatch.setitem(requirements.LOOKS, "Yama", lambda root: None)
    assert broker_checks.by_file("Yama").status == OK


@pytest.mark.parametrize(
    ("number", "status", "remedy"),
    [
        (0, OK, None),
        (errno.EBUSY, MISSING, "run netsandbox outside of it"),
        (errno.EINVAL, MISSING, "use Linux 5.14 or newer"),
        (errno.ENOSYS, MISSING, "use Linux 5.14 or newer"),
    ],
)
def test_the_notification_must_pass_descriptors(number: int, status: str, remedy: str | None) -> None:
    check = broker_checks.notification(number)
    assert check.status == status
    assert remedy is None or remedy in (check.remedy or "")


@pytest.mark.parametrize(
    ("abi", "needed", "limits"),
    [(0, MISSING, []), (1, OK, [NOTE, NOTE]), (3, OK, [NOTE, NOTE]), (4, OK, [OK, NOTE]), (6, OK, [OK, OK])],
)
def test_an_older_landlock_is_missing_or_weaker(abi: int, needed: str, limits: list[str]) -> None:
    assert broker_checks.landlock(abi).status == needed
    assert [check.status for check in broker_checks.landlock_limits(abi)] == limits


def test_a_device_that_routes_the_loopback_is_a_note() -> None:
    check = broker_checks.other_devices(["docker0", "veth1"])
    assert (check.status, check.found.startswith("docker0, veth1 ")) == (NOTE, True)


def test_an_unknown_machine_has_no_notification() -> None:
    assert trial(lambda: broker_checks.add_with_reply("riscv64")) == errno.ENOSYS


def test_the_trial_knows_whether_the_kernel_passes_descriptors_and_whether_a_listener_is_around() -> None:
    """In a process of its own: its calls are trapped from then on, and a second listener is refused."""
    body = "from netsandbox.doctor.broker_checks import *; add_with_reply(os.uname().machine)"
    again = f"{body}\ntry: add_with_reply(os.uname().machine)\nexcept OSError as error: print(error.errno)"
    done = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(errno.EBUSY)]


@pytest.mark.usefixtures("needs_broker")
def test_this_machine_has_what_it_needs() -> None:
    found = broker_checks.checks()
    assert [check for check in found if check.status == MISSING] == []
    assert {check.name for check in found} >= {"kernel", "native helper", "seccomp", "Landlock", "Yama", "loopback"}


@pytest.fixture
def needs_broker() -> Any:
    if (missing := requirements.missing()) or broker_checks.landlock_abi() < requirements.LEAST_LANDLOCK:
        pytest.skip(f"this machine cannot run the backend broker: {missing or os.uname().release}")
