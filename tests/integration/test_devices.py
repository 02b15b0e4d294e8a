"""The devices of a session are those of docs/processes.md; others are opened by name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from netsandbox.backends.linux.file_view import HOST_DEVICES
from tests.rig.workshop import ROOT

pytestmark = pytest.mark.usefixtures("user_namespaces")

NUMBERS = "import os, sys; found = os.stat(sys.argv[1]).st_rdev; print(os.major(found), os.minor(found))"


def documented() -> set[str]:
    page = Path(ROOT, "docs", "processes.md").read_text()
    table = page.partition("| `/dev/…` | |")[2].partition("\n\n")[0]
    cells = [row.partition("|")[2].partition("|")[0] for row in table.splitlines()]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.ordinary_user
def test_a_project_has_the_devices_of_the_page_and_no_others(netsandbox: Any) -> None:
    run = netsandbox("run", "--files", "project", "--", "ls", "/dev")
    assert set(run.stdout.split()) == documented() - {"console"}
    terminal = netsandbox.spawn("run", "--files", "project", "--", "ls", "-1", "/dev", terminal=True)
    seen = terminal.read_until(b"zero").decode()
    assert set(seen.split()) == documented()
    terminal.wait()


def numbers(netsandbox: Any, path: str, *options: str) -> str:
    run = netsandbox("run", *options, "--", "python3", "-c", NUMBERS, path)
    return str(run.stdout.strip() or run.stderr.strip().splitlines()[-1])


def host(path: str) -> str:
    found = os.stat(path).st_rdev
    return f"{os.major(found)} {os.minor(found)}"


@pytest.mark.ordinary_user
@pytest.mark.parametrize("mode", ["readable", "open"])
def test_devices_that_control_the_machine_are_closed_in_every_mode(netsandbox: Any, mode: str) -> None:
    closed = [f"/dev/{name}" for name in HOST_DEVICES if os.path.exists(f"/dev/{name}")]
    script = "import os, sys; print(*[os.minor(os.stat(path).st_rdev) for path in sys.argv[1:]])"
    run = netsandbox("run", "--files", mode, "--", "python3", "-c", script, *closed)
    assert run.stdout.split() == ["3"] * len(closed)  # /dev/null


@pytest.mark.ordinary_user
@pytest.mark.parametrize("mode", ["project", "readable", "open"])
def test_a_named_device_is_opened(netsandbox: Any, mode: str) -> None:
    device = next((path for path in ("/dev/kvm", "/dev/fuse", "/dev/vsock") if os.path.exists(path)), None)
    if device is None:
        pytest.skip("there is no device to open")
    assert numbers(netsandbox, device, "--files", mode, "--allow-device", device) == host(device)
    assert numbers(netsandbox, device, "--files", mode) != host(device)


@pytest.mark.ordinary_user
def test_the_start_names_it_and_a_disk_is_refused(netsandbox: Any) -> None:
    run = netsandbox("run", "--allow-device", "/dev/full", "--", "true")
    assert run.stderr == "netsandbox: /dev/full: open to the command, with all that the driver lets this user do\n"
    assert netsandbox("run", "-q", "--allow-device", "/dev/full", "--", "true").stderr == ""
    disks = [f"/dev/{name}" for name in ("vda", "sda", "nvme0n1", "loop0") if os.path.exists(f"/dev/{name}")]
    for disk in disks:
        refused = netsandbox("run", "--allow-device", disk, "--", "true")
        assert refused.returncode == 2
        assert "is a disk" in refused.stderr


def test_the_kernels_log_stays_as_it_is(netsandbox: Any) -> None:
    """The canary: a line that root's session writes to /dev/kmsg does not appear there."""
    if netsandbox.identity.uid != 0 or not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("only root reads the kernel's log")
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.lseek(log, 0, os.SEEK_END)
        for mode in ("project", "readable", "open"):
            netsandbox("run", "--files", mode, "--", "sh", "-c", "echo K3RN3L-CANARY > /dev/kmsg")
        seen = b""
        try:
            while line := os.read(log, 8192):
                seen += line
        except BlockingIOError:
            pass
        assert b"K3RN3L-CANARY" not in seen
    finally:
        os.close(log)
