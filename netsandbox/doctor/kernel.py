"""Questions to the kernel: what can be made here, tried the way a session makes it."""

from __future__ import annotations

import ctypes
import errno
import os
import socket

from netsandbox.backends.namespaces import nft_bytes
from netsandbox.doctor import trial
from netsandbox.doctor.trial import LIBC, checked, enter_namespaces

NETLINK_NETFILTER = 12
NLMSG_ERROR = 2
SECONDS = 3.0
MS_REC_PRIVATE = 0x4000 | 0x40000
# seccomp(2); landlock_create_ruleset(2)
SECCOMP = {"x86_64": 317, "aarch64": 277}
GET_ACTION_AVAILABLE = 2
ACTION_NOTIFY = 0x7FC00000
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_VERSION = 1


def user_namespace() -> int:
    """Each question answers 0 for yes, else the error number."""
    return trial.trial(lambda: enter_namespaces(trial.NEW_USER))


def network_namespace() -> int:
    return trial.trial(lambda: enter_namespaces(trial.NEW_USER | trial.NEW_NETWORK))


def private_proc() -> int:
    return trial.trial(_mount_proc)


def transparent_capture() -> int:
    """nftables with tproxy: the very rules of a session, in a namespace that ends with the child."""
    return trial.trial(_install_rules)


def seccomp_notification(machine: str) -> int:
    number = SECCOMP.get(machine)
    if number is None:
        return errno.ENOSYS
    action = ctypes.c_uint32(ACTION_NOTIFY)
    result = LIBC.syscall(number, GET_ACTION_AVAILABLE, 0, ctypes.byref(action))
    return 0 if result == 0 else ctypes.get_errno()


def landlock_abi() -> int:
    """The version of Landlock, 0 where there is none."""
    version: int = LIBC.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_VERSION)
    return max(version, 0)


def ipv6_sockets() -> int:
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()
    except OSError as error:
        return error.errno or errno.EAFNOSUPPORT
    return 0


def _mount_proc() -> None:
    enter_namespaces(trial.NEW_USER | trial.NEW_MOUNTS | trial.NEW_PROCESSES)
    checked(LIBC.mount(None, b"/", None, MS_REC_PRIVATE, None))
    # Only a process inside the new PID namespace may mount its /proc.
    number = trial.trial(_mount_own_proc)
    if number:
        raise OSError(number, os.strerror(number))


def _mount_own_proc() -> None:
    checked(LIBC.mount(b"proc", b"/proc", b"proc", 0, None))


def _install_rules() -> None:
    enter_namespaces(trial.NEW_USER | trial.NEW_NETWORK)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as channel:
        channel.settimeout(SECONDS)
        channel.send(nft_bytes.FILTER)
        missing = nft_bytes.FILTER_ACKNOWLEDGEMENTS
        while missing > 0:
            for number in error_numbers(channel.recv(65536)):
                if number:
                    raise OSError(number, os.strerror(number))
                missing -= 1


def error_numbers(data: bytes) -> list[int]:
    """The error number of every acknowledgement in *data* (netlink(7)); 0 is success."""
    numbers = []
    at = 0
    while at + 20 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        if int.from_bytes(data[at + 4 : at + 6], "little") == NLMSG_ERROR:
            numbers.append(-int.from_bytes(data[at + 16 : at + 20], "little", signed=True))
        at += max((length + 3) & ~3, 20)
    return numbers
