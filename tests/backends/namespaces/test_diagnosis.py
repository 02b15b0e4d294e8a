"""A session that cannot stand says why and what to do; nothing runs unconfined instead (attack 134)."""

from __future__ import annotations

import errno

import pytest

from netsandbox.backends.namespaces import diagnosis

DOING = ("run", "start it with", "raise", "allow them", "modprobe", "see `netsandbox")


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What /proc/sys says, by path."""
    values: dict[str, str] = {}
    monkeypatch.setattr(diagnosis, "_read", values.get)
    return values


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("", 0),
        ("creating namespaces", errno.EPERM),
        ("creating namespaces", errno.ENOSPC),
        ("creating namespaces", errno.EINVAL),
        ("/proc/self/uid_map", errno.EPERM),
        ("/proc/self/setgroups", errno.EACCES),
        ("/proc/sys", errno.ENOSYS),
        ("/home/me/.local/state/netsandbox", errno.EPERM),
        ("/proc", errno.EPERM),
        ("loading the capture rules (nftables tproxy)", errno.ENOENT),
        ("configuring loopback", errno.EPERM),
        ("installing the seccomp filter", errno.EINVAL),
        ("opening a door", errno.EMFILE),
        ("serving trapped calls", 0),
        ("anything else", 99999),
    ],
)
def test_every_message_ends_with_what_to_do(step: str, number: int, switches: dict[str, str]) -> None:
    text = diagnosis.explain_failure(step, number)
    last = text.replace(";", ".").split(". ")[-1]
    assert any(word in last for word in DOING), text
    assert "\n" not in text


@pytest.mark.attack(134)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        ("/proc/sys/user/max_user_namespaces", "0"),
    ],
)
def test_the_switch_that_forbids_is_named_with_the_command_that_turns_it(
    path: str, value: str, switches: dict[str, str]
) -> None:
    switches[path] = value
    text = diagnosis.explain_failure("creating namespaces", errno.EPERM)
    name = path.removeprefix("/proc/sys/").replace("/", ".")
    assert f"sysctl -w {name}=" in text


def test_for_apparmor_the_advice_is_a_profile_and_no_switch_for_all_programs(switches: dict[str, str]) -> None:
    switches["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1"
    text = diagnosis.explain_failure("/proc/self/setgroups", errno.EACCES)
    assert "apparmor_restrict_unprivileged_userns=1; run `netsandbox doctor --fix`" in text
    assert "sysctl" not in text


def test_switches_that_permit_are_not_blamed(switches: dict[str, str]) -> None:
    switches["/proc/sys/kernel/unprivileged_userns_clone"] = "1"
    switches["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "0"
    switches["/proc/sys/user/max_user_namespaces"] = "15000"
    assert "container" in diagnosis.explain_failure("creating namespaces", errno.EPERM)


def test_an_old_kernel_is_called_old() -> None:
    assert "Linux 5.12" in diagnosis.explain_failure("/proc/sys", errno.ENOSYS)


def test_a_path_that_cannot_be_covered_is_named(switches: dict[str, str]) -> None:
    assert "cannot cover /home/me in the session" in diagnosis.explain_failure("/home/me", errno.EACCES)
