"""`netsandbox doctor` on this machine, for real: every probe runs in each backend, nothing gets out, nothing stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from netsandbox.doctor.check import Check
from netsandbox.doctor.examine import backend_report
from netsandbox.doctor.jail import Finding
from netsandbox.doctor.report import Report, lines

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
PROCESS_PROBES = ["read-process", "trace-process", "signal-process"]
CHECKS = {
    None: {"architecture", "state directory", "splice", "inspection", "NAME.localhost", "limits", "launcher"},
    "namespaces": {
        "kernel",
        "native helper",
        "user namespaces",
        "network namespace",
        "nftables tproxy",
        "private /proc",
        "seccomp",
        "IPv6",
        "Landlock",
        "overlay",
        "link mounts",
    },
    "broker": {"kernel", "native helper", "seccomp", "Landlock", "TCP backstop", "signals", "Yama", "loopback"},
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
    assert [each for each in report["jail"] if each["status"] not in ("ok", "skipped", "note")] == []
    assert [each for each in report["machine"] if each["status"] == "MISSING"] == []
    assert (run.returncode, run.stderr, report["ok"]) == (0, "", True)
    assert [(each["backend"], each["ok"]) for each in report["backends"]] == [("namespaces", True), ("broker", True)]
    assert list((home.path / "tmp").iterdir()) == []
    assert sorted(home.state.rglob("*")) == before
    assert not (home.path / ".local").exists(), "a session of the doctor does not count as the first one"
    assert leftovers().processes == frozenset()


def test_both_backends_answer_the_same_probes(netsandbox: Any) -> None:
    report = json.loads(netsandbox("doctor", "--json", timeout=30).stdout)
    rows = {name: [each for each in report["jail"] if each["backend"] == name] for name in ("namespaces", "broker")}
    assert [each["probe"] for each in rows["namespaces"]] == PROBES
    assert [each["probe"] for each in rows["broker"] if each["probe"] not in PROCESS_PROBES] == PROBES
    assert [each["probe"] for each in rows["namespaces"] if each["status"] == "note"] == []
    for backend, names in CHECKS.items():
        found = {each["name"] for each in report["machine"] if each["backend"] == backend}
        assert found - {"loopback routes"} == names


def test_one_backend_alone(netsandbox: Any) -> None:
    report = json.loads(netsandbox("doctor", "--backend", "namespaces", "--json", timeout=30).stdout)
    assert {each["backend"] for each in (*report["jail"], *report["machine"])} == {None, "namespaces"}
    run = netsandbox("doctor", "--backend", "seatbelt")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.strip().endswith("use --backend namespaces or broker")


def without_namespaces(netsandbox: Any, *options: str) -> Any:
    """In a user namespace whose own limit is zero, as on a host that forbids them."""
    home = netsandbox.home()
    words = " ".join((home.identity.python, "-m", "netsandbox", "doctor", *options))
    forbid = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {words}"
    return home.plainly(["unshare", "--user", "--map-root-user", "sh", "-c", forbid])


@pytest.mark.attack(134)
def test_without_user_namespaces_the_doctor_names_the_switch(netsandbox: Any) -> None:
    run = without_namespaces(netsandbox, "--backend", "namespaces")
    assert run.returncode == 1
    assert "sysctl -w user.max_user_namespaces" in run.stdout
    assert run.stdout.splitlines()[0].startswith("Missing: 1 needed thing")


@pytest.mark.backend("broker")
def test_without_user_namespaces_the_broker_is_enough_and_the_first_line_says_so(netsandbox: Any) -> None:
    run = without_namespaces(netsandbox)
    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith("The backend namespaces cannot run here: user namespaces missing. Sessions use broker")
    assert run.stdout.splitlines()[2].startswith("broker: The jail holds: ")


@pytest.mark.backend("broker")
def test_inside_a_session_no_other_can_be_made(netsandbox: Any) -> None:
    words = ("--files", "open", "--", netsandbox.python, "-I", "-S", netsandbox.home().identity.command[-1])
    run = netsandbox("run", *words, "doctor", "--json")
    report = json.loads(run.stdout)
    assert (run.returncode, report["ok"], report["jail"]) == (1, False, [])
    missing = [each for each in report["machine"] if each["status"] == "MISSING" and each["backend"] == "broker"]
    assert [(each["name"], each["remedy"]) for each in missing] == [("seccomp", "run netsandbox outside of it")]


def test_what_is_missing_is_not_tried() -> None:
    lacking = Check("user namespaces", "MISSING", "Operation not permitted", "as root run `sysctl -w x=1`")
    report = backend_report("namespaces", [lacking], lambda: pytest.fail("no session can run here"))
    assert (report.ok, report.unproven) == (False, "user namespaces missing")
    report = backend_report("broker", [], lambda: pytest.fail("nor here"), lacking="state directory")
    assert (report.ok, report.unproven) == (False, "state directory missing")


def test_a_session_that_cannot_start_is_reported_and_not_raised() -> None:
    def broken() -> list[Finding]:
        raise OSError(24, "Too many open files")

    report = backend_report("namespaces", [], broken)
    assert not report.ok
    assert "Too many open files" in "\n".join(lines(Report([], [report])))
