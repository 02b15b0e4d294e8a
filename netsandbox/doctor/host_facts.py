"""What this machine says about user namespaces, and about what a session without them needs. Read only."""

from __future__ import annotations

import os

from netsandbox.backends.broker.requirements import DEVICES, FILTERED, read_file
from netsandbox.frozen import frozen

RESTRICTED = "kernel.apparmor_restrict_unprivileged_userns"
CLONE = "kernel.unprivileged_userns_clone"
PTRACE = "kernel.yama.ptrace_scope"
# A session makes one of each kind.
COUNTS = tuple(f"user.max_{kind}_namespaces" for kind in ("user", "net", "mnt", "pid", "ipc"))
LOCALNETS = tuple(f"net.ipv4.conf.{device}.route_localnet" for device in DEVICES)
SWITCHES = (RESTRICTED, CLONE, PTRACE, *COUNTS, *LOCALNETS)
CONTAINER_MARKS = (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io")


@frozen
class HostFacts:
    """`switches` has the values of sysctl by name, without those that this kernel lacks."""

    switches: dict[str, str]
    has_apparmor: bool
    is_filtered: bool  # a seccomp filter is on this process: of a container, or of another sandbox
    is_container: bool
    modules: str  # the security modules of this kernel, in their order; empty if that cannot be read
    profile: str = ""  # the AppArmor profile that confines this process

    @property
    def is_restricted(self) -> bool:
        """Whether AppArmor takes the capabilities away from programs without a profile."""
        return self.has_apparmor and self.switches.get(RESTRICTED, "0") != "0"

    @property
    def needs_profile(self) -> bool:
        """Whether a profile for the helper may open user namespaces: it replaces the one that confines us."""
        return self.is_restricted or (bool(self.profile) and not self.is_filtered)


def read_facts(root: str = "/") -> HostFacts:
    """The facts of the machine whose files are below *root*."""
    switches = {name: read_file(root, f"proc/sys/{name.replace('.', '/')}") for name in SWITCHES}
    status = read_file(root, "proc/self/status") or ""
    seccomp = [line.split()[-1] for line in status.splitlines() if line.startswith("Seccomp:")]
    return HostFacts(
        {name: value for name, value in switches.items() if value is not None},
        read_file(root, "sys/module/apparmor/parameters/enabled") == "Y",
        seccomp == [FILTERED],
        any(os.path.exists(os.path.join(root, mark)) for mark in CONTAINER_MARKS),
        read_file(root, "sys/kernel/security/lsm") or "",
        _profile(read_file(root, "proc/self/attr/apparmor/current") or ""),
    )


def _profile(label: str) -> str:
    """`NAME (enforce)`; others confine nothing."""
    name, _, mode = label.rpartition(" ")
    return name if mode == "(enforce)" else ""
