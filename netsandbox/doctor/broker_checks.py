"""Checks of a Linux machine for the backend `broker`: what the kernel's files show, and what only a trial does."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable

from netsandbox.backends.broker.launch import HELPER
from netsandbox.backends.broker.requirements import (
    LEAST_LANDLOCK,
    LOOKS,
    NETWORK_LANDLOCK,
    SIGNAL_LANDLOCK,
    routed_devices,
)
from netsandbox.doctor.check import MISSING, NOTE, OK, Check
from netsandbox.doctor.linux_checks import LIBC, SECCOMP, checked, helper, landlock_abi, trial

PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER, NEW_LISTENER = 1, 1 << 3  # seccomp(2)
RETURN_ALLOW = b"\x06\0\0\0\0\0\xff\x7f"  # one instruction of BPF
ADD_DESCRIPTOR = 0x40182103  # SECCOMP_IOCTL_NOTIF_ADDFD
SEND = 2  # SECCOMP_ADDFD_FLAG_SEND
FOUND = {
    "kernel": "passes sockets to a caller",
    "Yama": "the broker can read the memory of the session's processes",
    "loopback": "addresses of 127.0.0.0/8 stay on this machine",
}


def checks() -> list[Check]:
    """Every check of the backend. Forks, so call it before any thread is started. Another sandbox around this process
    is found by the trial of seccomp."""
    return [
        by_file("kernel", f"Linux {os.uname().release} {FOUND['kernel']}"),
        helper(HELPER),
        notification(trial(lambda: add_with_reply(os.uname().machine))),
        landlock(landlock_abi()),
        *landlock_limits(landlock_abi()),
        by_file("Yama"),
        routes(by_file("loopback"), landlock_abi()),
        *(other_devices(devices) for devices in [routed_devices()] if devices),
    ]


def by_file(name: str, well: str = "") -> Check:
    """A requirement that the kernel's files show. Its reason ends with the remedy."""
    look: Callable[[str], str | None] = LOOKS[name]
    reason = look("/")
    if reason is None:
        return Check(name, OK, well or FOUND[name])
    found, _, remedy = reason.rpartition("; ")
    return Check(name, MISSING, found, remedy)


def routes(check: Check, abi: int) -> Check:
    """With rules of Landlock for TCP, routes of the loopback only take one of two backstops away."""
    if check.status == OK or abi < NETWORK_LANDLOCK:
        return check
    return Check(check.name, NOTE, check.found, check.remedy)


def notification(number: int) -> Check:
    """*number*: the error of `add_with_reply`."""
    name = "seccomp"
    if number == 0:
        return Check(name, OK, "with user notification that passes descriptors")
    if number == errno.EBUSY:
        around = "another sandbox around this process traps its calls already"
        return Check(name, MISSING, around, "run netsandbox outside of it")
    remedy = "use Linux 5.14 or newer with CONFIG_SECCOMP_FILTER; in a container allow seccomp(2)"
    return Check(name, MISSING, f"no notification that passes descriptors: {os.strerror(number)}", remedy)


def landlock(abi: int) -> Check:
    if abi >= LEAST_LANDLOCK:
        return Check("Landlock", OK, f"ABI {abi}; files, memory and processes of others are closed")
    remedy = "start the kernel with lsm=landlock,…; in a container allow landlock_create_ruleset"
    return Check("Landlock", MISSING, "not there", remedy)


def landlock_limits(abi: int) -> list[Check]:
    """What a Landlock that suffices still lacks."""
    if abi < LEAST_LANDLOCK:
        return []
    network = Check("TCP backstop", OK, "Landlock refuses connect and bind of the command")
    if abi < NETWORK_LANDLOCK:
        found = f"ABI {abi} has no rules for TCP: the broker and the loopback hold connections alone"
        network = Check("TCP backstop", NOTE, found, "nothing to do; Linux 6.7 has them")
    signals = Check("signals", OK, "end at the session's border")
    if abi < SIGNAL_LANDLOCK:
        found = f"ABI {abi} does not scope them: the broker checks each, which takes longer"
        signals = Check("signals", NOTE, found, "nothing to do; Linux 6.12 does")
    return [network, signals]


def other_devices(devices: list[str]) -> Check:
    found = f"{', '.join(devices)} routes addresses of 127.0.0.0/8: a backstop less"
    return Check("loopback routes", NOTE, found, f"set net.ipv4.conf.{devices[0]}.route_localnet=0 if nothing needs it")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def add_with_reply(machine: str) -> None:
    """Get a listener, and reply to a call that does not wait with a descriptor: the kernel must miss the call (ENOENT)
    and not the flag (EINVAL). For a child process, whose calls are filtered from then on."""
    if machine not in SECCOMP:
        raise OSError(errno.ENOSYS, "unknown machine")
    checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    program = _Program(1, RETURN_ALLOW)
    listener = checked(LIBC.syscall(SECCOMP[machine], SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program)))
    reply = (1).to_bytes(8, "little") + SEND.to_bytes(4, "little") + bytes(12)  # struct seccomp_notif_addfd
    try:
        fcntl.ioctl(listener, ADD_DESCRIPTOR, reply)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
