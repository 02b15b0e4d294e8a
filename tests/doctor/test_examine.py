"""`netsandbox doctor` on this machine, for real: every probe runs, nothing gets out and nothing stays behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("user_namespaces"), pytest.mark.ordinary_user]

PROBES = """
control-name control-door
tcp-loopback udp-loopback mapped-loopback tcp-host udp-host mapped-host tcp-metadata
tcp6-loopback udp6-loopback tcp6-host udp6-host tcp6-global
door-connect door-connect-host door-socks5 door-rebinding
dns-server-udp dns-server-tcp dns-elsewhere-udp dns-elsewhere-tcp dns-denied-udp dns-denied-tcp dns-txt
unix-abstract unix-own unix-path unix-datagram unix-late
raw-socket raw6-socket packet-socket vsock-socket
io-uring user-namespace capabilities new-privileges seccomp-filter namespaces host-processes trace-init
signal-host descriptors
write-state write-log move-state write-code
write-linked-code write-interpreter write-mapped-code
file-control read-home read-replaced read-temporary write-home write-hook device limit-files
""".split()  # noqa: SIM905 (a literal would take a line a probe)
MACHINE = {
    "kernel",
    "architecture",
    "native helper",
    "user namespaces",
    "network namespace",
    "nftables tproxy",
    "private /proc",
    "seccomp",
    "IPv6",
    "state directory",
    "splice",
    "Landlock",
    "overlay",
    "link mounts",
    "limits",
    "launcher",
}


@pytest.mark.attack(112)
@pytest.mark.attack(121)
@pytest.mark.attack(122)
@pytest.mark.attack(123)
@pytest.mark.attack(125)
@pytest.mark.attack(131)
@pytest.mark.attack(132)
def test_the_doctor_finds_everything_well_and_leaves_nothing(netsandbox: Any, leftovers: Any) -> None:
    home = netsandbox.home()
    before = sorted(home.state.rglob("*"))  # the disk cache of tests
    run = netsandbox("doctor", "--json", timeout=30)
    report = json.loads(run.stdout)
    assert [each for each in report["jail"] if each["status"] not in ("ok", "skipped")] == []
    assert [each for each in report["machine"] if each["status"] == "MISSING"] == []
    assert (run.returncode, run.stderr, report["ok"]) == (0, "", True)
    assert [each["probe"] for each in report["jail"]] == PROBES
    assert {each["name"] for each in report["machine"]} == MACHINE
    assert list((home.path / "tmp").iterdir()) == []
    assert sorted(home.state.rglob("*")) == before
    assert not (home.path / ".local").exists(), "a session of the doctor does not count as the first one"
    assert leftovers().processes == frozenset()


@pytest.mark.attack(134)
def test_without_user_namespaces_the_doctor_names_the_switch(netsandbox: Any) -> None:
    """In a user namespace whose own limit is zero, as on a host that forbids them."""
    home = netsandbox.home()
    forbid = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {home.identity.python} -m netsandbox doctor"
    run = home.plainly(["unshare", "--user", "--map-root-user", "sh", "-c", forbid])
    assert run.returncode == 1
    assert "sysctl -w user.max_user_namespaces" in run.stdout
    assert "The jail was not proven: user namespaces missing" in run.stdout
