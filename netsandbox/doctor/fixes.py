"""What closes user namespaces on a machine, and the commands that open them. Pure: facts in, text out.

The text is a shell script: what is not a command is a comment, so all of it, or any line, can be pasted.
"""

from __future__ import annotations

from netsandbox.backends.broker.requirements import NETWORK_LANDLOCK
from netsandbox.doctor.host_facts import CLONE, COUNTS, LOCALNETS, PTRACE, RESTRICTED, HostFacts
from netsandbox.frozen import frozen
from netsandbox.text import single_line

SETTINGS_FILE = "/etc/sysctl.d/60-netsandbox.conf"
USUAL_COUNT = 15000
MAX_PTRACE = 1  # a greater one lets no process read another's memory
CONTAINER_OPTIONS = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"


@frozen
class Fix:
    """`steps` are lines of a shell script; a comment says what to change where no command does it."""

    cause: str
    steps: tuple[str, ...]


def namespace_fixes(facts: HostFacts, profile_steps: tuple[str, ...]) -> list[Fix]:
    """Every cause that can be seen; if there is none, the one that cannot."""
    fixes = []
    if facts.switches.get(CLONE) == "0":
        fixes.append(_switch(CLONE, "0", 1))
    fixes += [_switch(name, "0", USUAL_COUNT) for name in COUNTS if facts.switches.get(name) == "0"]
    if facts.is_restricted and not facts.is_container:
        cause = f"AppArmor takes the capabilities of user namespaces away ({RESTRICTED}={facts.switches[RESTRICTED]})"
        fixes.append(Fix(cause, profile_steps))
    elif facts.needs_profile and not facts.is_container and not fixes:
        fixes.append(Fix(f"the AppArmor profile {single_line(facts.profile)} confines netsandbox", profile_steps))
    if not fixes:
        fixes.append(_container() if facts.is_filtered or facts.is_container else _unknown())
    return fixes


def broker_fixes(facts: HostFacts, landlock_abi: int) -> list[Fix]:
    """What keeps the backend `broker` away, or weakens it."""
    fixes = []
    if int(facts.switches.get(PTRACE) or 0) > MAX_PTRACE:
        fixes.append(_switch(PTRACE, facts.switches[PTRACE], MAX_PTRACE))
    fixes += [_switch(name, "1", 0) for name in LOCALNETS if facts.switches.get(name) == "1"]
    if landlock_abi == 0:
        order = ",".join(["landlock", *(name for name in facts.modules.split(",") if name not in ("", "landlock"))])
        fixes.append(
            Fix(
                "Landlock is not there",
                (
                    f"# start the kernel with the parameter lsm={order}",
                    "# in a container use a seccomp profile that allows landlock_create_ruleset",
                ),
            )
        )
    elif landlock_abi < NETWORK_LANDLOCK:
        fixes.append(Fix(f"Landlock has no rules for TCP (ABI {landlock_abi})", ("# use Linux 6.7 or newer",)))
    return fixes


def proc_fix() -> Fix:
    return Fix(
        "user namespaces can be made, but no private /proc: that of the container is masked",
        (
            "# docker run --security-opt systempaths=unconfined …",
            "# podman run --security-opt unmask=ALL …",
            "# in Kubernetes procMount: Unmasked and hostUsers: false",
        ),
    )


def capture_fix() -> Fix:
    return Fix(
        "the kernel has not loaded nft_tproxy",
        ("sudo modprobe nft_tproxy", "echo nft_tproxy | sudo tee /etc/modules-load.d/netsandbox.conf"),
    )


def _switch(name: str, value: str, wanted: int) -> Fix:
    return Fix(
        f"{name}={value}",
        (
            f"echo '{name} = {wanted}' | sudo tee -a {SETTINGS_FILE}",
            f"sudo sysctl -w {name}={wanted}",
        ),
    )


def _container() -> Fix:
    return Fix(
        "the seccomp filter or the AppArmor profile of a container, or of another sandbox, forbids user namespaces",
        (
            f"# docker run {CONTAINER_OPTIONS} --security-opt systempaths=unconfined …",
            f"# podman run {CONTAINER_OPTIONS} --security-opt unmask=ALL …",
            "# in Kubernetes seccompProfile: Unconfined and procMount: Unmasked, which the level restricted forbids",
        ),
    )


def _unknown() -> Fix:
    return Fix(
        "no setting of this machine shows why user namespaces are closed",
        (
            "# look at the last lines of `sudo dmesg`: a security module may have written a line there",
            "# a process in a chroot can make none: run netsandbox outside of it",
        ),
    )


def script(fixes: list[Fix]) -> list[str]:
    """The lines of a shell script with all of *fixes*."""
    return [line for fix in fixes for line in (f"# {fix.cause}:", *fix.steps, "")]
