"""Every cause comes with what to type, and all of it together is a shell script."""

from __future__ import annotations

import subprocess

import pytest

from netsandbox.doctor.fixes import Fix, broker_fixes, capture_fix, namespace_fixes, proc_fix, script
from netsandbox.doctor.host_facts import COUNTS, HostFacts
from netsandbox.frozen import copy_with

RESTRICTED = {"kernel.apparmor_restrict_unprivileged_userns": "1"}
STEPS = ("sudo apparmor_parser -r FILE",)


def facts(
    switches: dict[str, str], *, apparmor: bool = True, filtered: bool = False, container: bool = False
) -> HostFacts:
    return HostFacts(switches, apparmor, filtered, container, "lockdown,yama,landlock,apparmor")


def test_ubuntu_gets_the_profile() -> None:
    (fix,) = namespace_fixes(facts(RESTRICTED), STEPS)
    assert "kernel.apparmor_restrict_unprivileged_userns=1" in fix.cause
    assert fix.steps == STEPS


@pytest.mark.parametrize(
    ("name", "wanted"), [("kernel.unprivileged_userns_clone", 1), *((name, 15000) for name in COUNTS)]
)
def test_a_switch_gets_the_command_that_sets_it_for_now_and_for_later(name: str, wanted: int) -> None:
    (fix,) = namespace_fixes(facts({name: "0"}), ())
    assert fix == Fix(
        f"{name}=0",
        (
            f"echo '{name} = {wanted}' | sudo tee -a /etc/sysctl.d/60-netsandbox.conf",
            f"sudo sysctl -w {name}={wanted}",
        ),
    )


def test_a_program_that_a_profile_confines_gets_one_for_the_helper() -> None:
    """As where an administrator confines netsandbox; a container has a profile too, which we cannot change."""
    confined = copy_with(facts({}), profile="closed")
    (fix,) = namespace_fixes(confined, STEPS)
    assert fix == Fix("the AppArmor profile closed confines netsandbox", STEPS)
    for change in ({"is_container": True}, {"is_filtered": True}):
        (fix,) = namespace_fixes(copy_with(confined, **change), STEPS)
        assert fix.steps != STEPS


def test_all_causes_are_named() -> None:
    closed = {**RESTRICTED, "kernel.unprivileged_userns_clone": "0", "user.max_user_namespaces": "0"}
    assert len(namespace_fixes(facts(closed), STEPS)) == 3


@pytest.mark.parametrize(("filtered", "container"), [(True, False), (False, True)])
def test_in_a_container_its_options_are_named(filtered: bool, container: bool) -> None:
    """The profile of the host is no fix there, even if the host restricts."""
    switches = RESTRICTED if container else {}
    (fix,) = namespace_fixes(facts(switches, filtered=filtered, container=container), STEPS)
    text = "\n".join(fix.steps)
    for word in ("docker run", "seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined", "unmask=ALL"):
        assert word in text
    assert "seccompProfile: Unconfined" in text


def test_what_cannot_be_seen_is_said() -> None:
    (fix,) = namespace_fixes(facts({}), ())
    assert "dmesg" in fix.steps[0]


@pytest.mark.parametrize(("scope", "fixed"), [("0", False), ("1", False), ("2", True), ("3", True)])
def test_yama_matters_where_it_forbids_reading_memory(scope: str, fixed: bool) -> None:
    found = broker_fixes(facts({"kernel.yama.ptrace_scope": scope}), 6)
    assert [fix.cause for fix in found] == ([f"kernel.yama.ptrace_scope={scope}"] if fixed else [])
    assert not fixed or "sudo sysctl -w kernel.yama.ptrace_scope=1" in found[0].steps


@pytest.mark.parametrize(
    ("abi", "word"),
    [(0, "lsm=landlock,lockdown,yama,apparmor"), (2, "Linux 6.7"), (3, "Linux 6.7"), (4, None)],
)
def test_landlock_is_wanted_with_rules_for_tcp(abi: int, word: str | None) -> None:
    found = broker_fixes(facts({}), abi)
    assert len(found) == (word is not None)
    assert word is None or word in found[0].steps[0]


def test_a_loopback_that_is_routed_is_closed_again() -> None:
    (fix,) = broker_fixes(facts({"net.ipv4.conf.all.route_localnet": "1", "net.ipv4.conf.lo.route_localnet": "0"}), 6)
    assert "sudo sysctl -w net.ipv4.conf.all.route_localnet=0" in fix.steps


def test_everything_together_is_a_shell_script() -> None:
    closed = dict.fromkeys(("kernel.unprivileged_userns_clone", *COUNTS), "0")
    fixes = [
        *namespace_fixes(facts(closed | RESTRICTED), STEPS),
        *namespace_fixes(facts({}), ()),
        *namespace_fixes(facts({}, filtered=True), ()),
        *broker_fixes(facts({"kernel.yama.ptrace_scope": "3"}), 0),
        *broker_fixes(facts({}), 1),
        proc_fix(),
        capture_fix(),
    ]
    lines = script(fixes)
    checked = subprocess.run(["sh", "-n"], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert checked.stderr == ""
    assert all(line.startswith(("# ", "sudo ", "echo ")) for line in lines if line)
