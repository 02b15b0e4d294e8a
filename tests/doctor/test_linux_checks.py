"""Each check says what is there, and for what is lacking the setting that changes it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from netsandbox_proxy.inspect.installed import INSTALL

from netsandbox.backends.linux.cgroup import Cgroup
from netsandbox.doctor import linux_checks as machine
from netsandbox.doctor.check import MISSING, NOTE, OK, UNTRIED, Check
from netsandbox.doctor.linux_checks import LIBC, STRANGE, checked, error_numbers, trial
from netsandbox.session import inspection


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("6.18.5-generic", OK),
        ("5.12", OK),
        ("5.15.90.1-WSL2", OK),
        ("5.11.9", MISSING),
        ("5.10.0-28-amd64", MISSING),
        ("4.19.0", MISSING),
    ],
)
def test_an_old_kernel_is_named(release, status):
    assert machine.kernel_version(release).status == status


def test_an_architecture_without_numbers_is_missing():
    assert machine.architecture("x86_64").status == OK
    assert machine.architecture("riscv64").status == MISSING


def test_a_helper_must_be_there_and_executable(tmp_path: Path):
    file = tmp_path / "netsandbox-init"
    assert "not there" in machine.helper(str(file)).found
    file.write_bytes(b"")
    file.chmod(0o644)
    assert "not executable" in machine.helper(str(file)).found
    file.chmod(0o755)
    assert machine.helper(str(file)).status == OK


@pytest.mark.parametrize(
    ("step", "number", "word"),
    [
        ("creating namespaces", errno.EPERM, "namespaces"),
        ("creating namespaces", errno.ENOSPC, "namespaces"),
        ("nftables", errno.ENOENT, "modprobe nft_tproxy"),
        ("/proc", errno.EPERM, "systempaths=unconfined"),
    ],
)
def test_what_the_kernel_refuses_comes_with_its_switch(step, number, word):
    check = machine.by_error("thing", number, step)
    assert check.status == MISSING
    assert check.remedy is not None
    assert word in (check.remedy or "")


def test_what_is_optional_is_a_note():
    assert machine.splice(present=False).status == NOTE
    assert machine.landlock(0).status == NOTE
    assert machine.landlock(5).status == NOTE
    assert machine.landlock(6) == Check("Landlock", OK, "ABI 6; signals end at the session's border")


def test_without_mitmproxy_inspection_is_a_note_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.inspection().status == OK
    monkeypatch.setattr(inspection, "version_in", lambda folders: None)
    found = machine.inspection()
    assert (found.status, found.found) == (NOTE, "inspection needs mitmproxy, which is not installed here")
    assert found.remedy == f"run {INSTALL}, for rules for requests and secrets"


def test_seccomp_and_ipv6_are_needed():
    assert machine.seccomp(errno.EINVAL).status == MISSING
    assert machine.ipv6(errno.EAFNOSUPPORT).status == MISSING


def _message(kind: int, number: int, length: int = 20) -> bytes:
    header = length.to_bytes(4, "little") + kind.to_bytes(2, "little") + bytes(10)
    return (header + (-number).to_bytes(4, "little", signed=True)).ljust((length + 3) & ~3, b"\0")


def test_netlink_acknowledgements_are_read_to_the_last():
    data = _message(2, 0, 36) + _message(3, 0, 24) + _message(2, errno.ENOENT, 21)
    assert error_numbers(data) == [0, errno.ENOENT]
    assert error_numbers(data[:19]) == []
    assert error_numbers(bytes(64)) == []


def test_one_cause_has_one_remedy(monkeypatch):
    """Attack 134: what stands on something missing is not tried, and sends nobody looking for other switches."""
    monkeypatch.setattr(machine, "user_namespace", lambda: errno.EPERM)
    monkeypatch.setattr(machine, "helper_failure", lambda: "creating namespaces failed")
    checks = machine.namespaces()
    assert [check.status for check in checks] == [MISSING, UNTRIED, UNTRIED, UNTRIED]
    assert [check.remedy for check in checks[1:]] == [None, None, None]


@pytest.mark.usefixtures("user_namespaces")
def test_what_only_the_helper_may_make_is_there(monkeypatch):
    """An AppArmor profile names the helper, not this process. The helper is tried for real."""
    monkeypatch.setattr(machine, "user_namespace", lambda: errno.EACCES)
    assert machine.namespaces() == [Check(name, OK, "can be made by the helper alone") for name in machine.NAMESPACES]
    assert [check.status for check in machine.mounts()] == [UNTRIED, UNTRIED]


def test_without_a_network_namespace_the_rules_are_not_tried(monkeypatch):
    answers = {"user_namespace": 0, "private_proc": 0, "network_namespace": errno.EPERM}
    for name, answer in answers.items():
        monkeypatch.setattr(machine, name, lambda answer=answer: answer)
    assert [check.status for check in machine.namespaces()] == [OK, OK, MISSING, UNTRIED]


def test_success_is_zero():
    assert trial(lambda: None) == 0


def test_an_error_is_its_number():
    assert trial(lambda: os.close(-1)) == errno.EBADF


def test_anything_else_is_strange_and_never_success():
    assert trial(lambda: int("x")) == STRANGE


def test_a_trial_changes_nothing_in_this_process():
    before = os.getcwd()
    assert trial(lambda: os.chdir("/")) == 0
    assert os.getcwd() == before


def test_a_failed_call_of_libc_is_raised():
    with pytest.raises(OSError, match="Bad file descriptor"):
        checked(LIBC.close(-1))


@pytest.mark.parametrize("check", [machine.overlay, machine.link_mount])
def test_what_a_session_can_do_without_is_a_note(check: Callable[[int], Check]) -> None:
    assert check(0).status == OK
    lacking = check(errno.EPERM)
    assert (lacking.status, lacking.found[:23]) == (NOTE, "Operation not permitted")


def test_a_launcher_that_follows_pythonpath_is_a_fault(tmp_path: Path) -> None:
    """H3: a folder of the project would run instead of ours."""
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_text(f"#!/bin/sh\nexec {sys.executable} -m netsandbox\n")
    good.write_text("#!/bin/sh\necho netsandbox 1\n")
    for path in (bad, good):
        path.chmod(0o755)
    assert machine.launcher(str(bad)).status == MISSING
    assert machine.launcher(str(good)).status == OK
    assert machine.launcher(str(tmp_path / "absent")).status == NOTE


def test_limits_name_what_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.limits(Cgroup("x", (), "/")).found.startswith("memory, processes and cpu by a cgroup, others")
    assert "a cgroup of systemd" in machine.limits(Cgroup("x", (), "/", "/run/socket")).found
    for root, held in ((True, "memory by"), (False, "memory and processes by")):
        monkeypatch.setattr(machine, "is_exempt", lambda root=root: root)
        check = machine.limits(None)
        assert check.status == NOTE
        assert check.found.startswith(held)
        assert "enable-linger" in (check.remedy or "")


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ("hosts: files dns", NOTE),
        ("# hosts: files myhostname\nhosts: files dns", NOTE),
        ("passwd: myhostname\n", NOTE),
        ("hosts: files mdns4_minimal [NOTFOUND=return] dns myhostname", OK),
        ("hosts:\tmymachines resolve [!UNAVAIL=return] files dns # x", OK),
    ],
)
def test_whether_names_of_servers_resolve_is_told_by_the_settings_of_the_c_library(tmp_path: Path, hosts, status):
    (tmp_path / "nsswitch.conf").write_text(f"{hosts}\n")
    found = machine.server_names(str(tmp_path / "nsswitch.conf"))
    assert (found.status, "netsandbox ports" in (found.remedy or "")) == (status, status == NOTE)
    assert machine.server_names(str(tmp_path / "missing")).status == NOTE
