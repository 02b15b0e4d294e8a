"""System call numbers that the filter names, for the two ABIs we run on (asm/unistd.h; both little-endian)."""

from __future__ import annotations

from netsandbox.errors import HostError
from netsandbox.frozen import frozen


@frozen
class Abi:
    """One kernel ABI: its numbers, and which of them are refused (EPERM) or said not to exist (ENOSYS)."""

    audit_architecture: int
    has_x32: bool
    calls: dict[str, int]
    refused: tuple[str, ...]
    absent: tuple[str, ...]


_ABSENT = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key")
_SAME_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "mount_setattr": 442,
    "open_tree_attr": 467,
}
# name: (x86_64, aarch64)
_NUMBERS = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "bind": (49, 200),
    "connect": (42, 203),
    "listen": (50, 201),
    "clone": (56, 220),
    "unshare": (272, 97),
    "ioctl": (16, 29),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "vhangup": (153, 58),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
}
_FILTERED = (
    *("socket", "socketpair", "bind", "connect", "listen"),
    *("clone", "unshare", "ioctl", "setpriority", "ioprio_set"),
)


def _abi(column: int, audit_architecture: int, *, has_x32: bool) -> Abi:
    calls = {name: numbers[column] for name, numbers in _NUMBERS.items()} | _SAME_EVERYWHERE
    refused = tuple(name for name in calls if name not in _FILTERED and name not in _ABSENT)
    return Abi(audit_architecture, has_x32, calls, refused, _ABSENT)


def abi_of(machine: str) -> Abi:
    """The ABI of `uname -m`; an architecture we have no numbers for cannot be confined."""
    if machine == "x86_64":
        return _abi(0, 0xC000003E, has_x32=True)
    if machine == "aarch64":
        return _abi(1, 0xC00000B7, has_x32=False)
    raise HostError(f"no seccomp filter for {machine}; netsandbox runs on x86_64 and aarch64")
