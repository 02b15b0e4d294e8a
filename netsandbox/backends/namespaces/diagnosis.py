"""Explains why the helper could not set the session up; each message ends with what to do."""

from __future__ import annotations

import errno
import os

from netsandbox.paths import short
from netsandbox.text import few, single_line

ADVICE = {"mounting the overlay": "leave out --overlay, or set XDG_STATE_HOME to a disk that is not an overlay itself"}
ID_FILES = ("/proc/self/setgroups", "/proc/self/uid_map", "/proc/self/gid_map")


def is_of_machine(step: str, number: int) -> bool:
    """Whether the machine, or a sandbox around us, refuses what every session of this backend needs. Steps that carry
    out rules of one session, and a lack of descriptors, are not of this kind."""
    if number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.E2BIG):
        return False
    return step in ("creating namespaces", "making mounts private", "/proc", "dropping capabilities", *ID_FILES) or (
        "nftables" in step or step == "configuring loopback"
    )


def explain_failure(step: str, number: int) -> str:
    """The message for a failed set-up step; an empty step means that the helper died without a message."""
    if not step:
        return "the native helper ended before the sandbox was set up; run `netsandbox doctor`"
    if not number:
        return f"{step} failed, so the command has been ended; see `netsandbox audit show`"
    what = f"{step} failed: {os.strerror(number)}"
    if step.startswith("/") and step not in ID_FILES:
        what = f"cannot cover {step} in the session: {os.strerror(number)}"
    if number == errno.E2BIG:
        return f"{what}. The project has too many repositories or rules for one session; start it in a smaller folder"
    if step == "Landlock":
        return f"{what}. --no-debug and --allow-execute need it: Linux 5.19 or newer with lsm=landlock; leave them out"
    if number == errno.ENOSYS:
        return f"{what}. The kernel is too old or hides the call; run it on Linux 5.12 or newer"
    if number in (errno.EMFILE, errno.ENFILE):
        return f"{what}, so the command was not started or has been ended; raise the limit, as by `ulimit -n 1024`"
    if number == errno.ETOOMANYREFS:
        return f"{what}. Programs of this user have too many descriptors in flight; raise `ulimit -Hn` or end them"
    if step == "creating namespaces":
        return f"{what}. {_namespaces(number)}"
    if step == "/proc":
        return (
            f"cannot mount a private /proc: {os.strerror(number)}. In a container its /proc is masked; start it with "
            "`--security-opt systempaths=unconfined` or run netsandbox outside"
        )
    if "nftables" in step:
        return f"{what}. The kernel needs nf_tables and nft_tproxy; as root run `modprobe nft_tproxy`"
    if step in ID_FILES:
        return f"{what}. {_namespaces(number)}"
    return f"{what}; {ADVICE.get(step, 'run `netsandbox doctor` to see what this machine lacks')}"


def _namespaces(number: int) -> str:
    """The kernel setting that forbids user namespaces on this host."""
    for path, wanted, advice in (
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "1",
            "as root run `sysctl -w kernel.unprivileged_userns_clone=1`",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "0",
            "run `netsandbox doctor --fix`, which prints an AppArmor profile for the helper alone",
        ),
    ):
        value = _read(path)
        if value is not None and value != wanted:
            return f"User namespaces are forbidden by {path}={value}; {advice}"
    if _read("/proc/sys/user/max_user_namespaces") == "0":
        return (
            "User namespaces are forbidden by user.max_user_namespaces=0; "
            "as root run `sysctl -w user.max_user_namespaces=15000`"
        )
    if number == errno.ENOSPC:
        return "Too many namespaces; raise /proc/sys/user/max_*_namespaces or end other sandboxes"
    return (
        "User namespaces are not available here (the seccomp filter of a container or sandbox forbids them); "
        "allow them or run netsandbox outside of it"
    )


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def lost_covers(paths: list[str]) -> str:
    """The line about mounts that the host took away."""
    what = few(single_line(short(path)) for path in paths)
    return (
        f"the host replaced or removed {what} while the session ran, which took the protection away; the command may"
        " have read or changed what is there now"
    )
