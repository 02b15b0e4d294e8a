"""What this machine offers a session on Linux, and for what it lacks the setting that changes it."""

from __future__ import annotations

import os

from netsandbox.backends.namespaces.diagnosis import explain_failure
from netsandbox.backends.namespaces.launch import HELPER
from netsandbox.backends.namespaces.syscalls import abi_of
from netsandbox.doctor import kernel
from netsandbox.doctor.check import MISSING, NOTE, OK, UNTRIED, Check, state_directory
from netsandbox.errors import NetsandboxError

SIGNAL_SCOPE_ABI = 6
LEAST_KERNEL = (5, 12)  # mount_setattr(2); everything else is older
REINSTALL = "reinstall netsandbox with a C compiler at hand"


def checks() -> list[Check]:
    """Every check. Forks, so call it before any thread is started."""
    machine = os.uname().machine
    return [
        kernel_version(os.uname().release),
        architecture(machine),
        helper(HELPER),
        *namespaces(),
        seccomp(kernel.seccomp_notification(machine)),
        ipv6(kernel.ipv6_sockets()),
        state_directory(),
        splice(present=hasattr(os, "splice")),
        landlock(kernel.landlock_abi()),
    ]


def kernel_version(release: str) -> Check:
    numbers = tuple(int(part) for part in release.partition("-")[0].split(".")[:2] if part.isdigit())
    if numbers >= LEAST_KERNEL:
        return Check("kernel", OK, f"Linux {release}")
    return Check("kernel", MISSING, f"Linux {release}", "use Linux 5.12 or newer")


def architecture(machine: str) -> Check:
    try:
        abi_of(machine)
    except NetsandboxError as error:
        return Check("architecture", MISSING, machine, str(error))
    return Check("architecture", OK, machine)


def helper(path: str) -> Check:
    if os.access(path, os.X_OK):
        return Check("native helper", OK, path)
    found = "not executable" if os.path.exists(path) else "not there"
    return Check("native helper", MISSING, f"{path} is {found}", REINSTALL)


def namespaces() -> list[Check]:
    """Each needs the one before it; what stands on something missing is not tried, so that one cause has one remedy."""
    found = [by_error("user namespaces", kernel.user_namespace(), "creating namespaces")]
    for name, question, step in (
        ("private /proc", kernel.private_proc, "/proc"),
        ("network namespace", kernel.network_namespace, "creating namespaces"),
        ("nftables tproxy", kernel.transparent_capture, "nftables"),
    ):
        ground = found[2 if name == "nftables tproxy" else 0]
        if ground.status == OK:
            found.append(by_error(name, question(), step))
        else:
            found.append(Check(name, UNTRIED, f"needs {ground.name}"))
    return found


def by_error(name: str, number: int, step: str) -> Check:
    """*step* as `linux.diagnosis` knows it: it names the switch that forbids the thing."""
    if number == 0:
        return Check(name, OK, "can be made")
    return Check(name, MISSING, os.strerror(number), explain_failure(step, number))


def seccomp(number: int) -> Check:
    if number == 0:
        return Check("seccomp", OK, "with user notification")
    remedy = "use a kernel with CONFIG_SECCOMP_FILTER; in a container allow seccomp(2)"
    return Check("seccomp", MISSING, f"no user notification: {os.strerror(number)}", remedy)


def ipv6(number: int) -> Check:
    if number == 0:
        return Check("IPv6", OK, "sockets can be made")
    return Check("IPv6", MISSING, os.strerror(number), "start the kernel without ipv6.disable=1")


def splice(*, present: bool) -> Check:
    if present:
        return Check("splice", OK, "bytes are relayed inside the kernel")
    return Check("splice", NOTE, "bytes are relayed by copying", "a Python with os.splice is faster")


def landlock(abi: int) -> Check:
    if abi >= SIGNAL_SCOPE_ABI:
        return Check("Landlock", OK, f"ABI {abi}; signals end at the session's border")
    remedy = "nothing to do; Linux 6.12 with lsm=landlock,… has it"
    return Check("Landlock", NOTE, f"ABI {abi}, without signal scopes; `kill 0` is refused instead", remedy)
