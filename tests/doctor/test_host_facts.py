"""Facts are read from the files of a machine; what it lacks is no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from netsandbox.doctor.host_facts import HostFacts, read_facts

UBUNTU = {
    "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
    "proc/sys/kernel/unprivileged_userns_clone": "1\n",
    "proc/sys/kernel/yama/ptrace_scope": "1\n",
    "proc/sys/user/max_user_namespaces": "63000\n",
    "proc/self/status": "Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n",
    "sys/module/apparmor/parameters/enabled": "Y\n",
    "sys/kernel/security/lsm": "lockdown,capability,landlock,yama,apparmor\n",
}


def written(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_ubuntu_as_shipped(tmp_path: Path) -> None:
    facts = read_facts(written(tmp_path, UBUNTU))
    switches = {
        "kernel.apparmor_restrict_unprivileged_userns": "1",
        "kernel.unprivileged_userns_clone": "1",
        "kernel.yama.ptrace_scope": "1",
        "user.max_user_namespaces": "63000",
    }
    modules = "lockdown,capability,landlock,yama,apparmor"
    assert facts == HostFacts(switches, has_apparmor=True, is_filtered=False, is_container=False, modules=modules)
    assert facts.is_restricted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n"),
        ("sys/module/apparmor/parameters/enabled", "N\n"),
    ],
)
def test_apparmor_that_is_off_restricts_nothing(tmp_path: Path, name: str, text: str) -> None:
    assert not read_facts(written(tmp_path, {**UBUNTU, name: text})).is_restricted


@pytest.mark.parametrize(
    ("label", "profile"),
    [
        ("closed-userns (enforce)\n", "closed-userns"),
        ("a name (enforce)\n", "a name"),
        ("unconfined\n", ""),
        ("netsandbox (unconfined)\n", ""),
        ("noted (complain)\n", ""),
    ],
)
def test_the_profile_that_confines_us_is_known(tmp_path: Path, label: str, profile: str) -> None:
    off = {"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n"}
    facts = read_facts(written(tmp_path, {**UBUNTU, **off, "proc/self/attr/apparmor/current": label}))
    assert (facts.profile, facts.is_restricted, facts.needs_profile) == (profile, False, bool(profile))


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io/token"])
def test_a_container_is_known(tmp_path: Path, mark: str) -> None:
    files = {**UBUNTU, mark: "", "proc/self/status": "Seccomp:\t2\nSeccomp_filters:\t1\n"}
    facts = read_facts(written(tmp_path, files))
    assert (facts.is_container, facts.is_filtered) == (True, True)


def test_a_machine_without_any_of_it(tmp_path: Path) -> None:
    assert read_facts(str(tmp_path)) == HostFacts(
        {}, has_apparmor=False, is_filtered=False, is_container=False, modules=""
    )


def test_this_machine_can_be_read() -> None:
    assert read_facts().switches["user.max_user_namespaces"].isdigit()
