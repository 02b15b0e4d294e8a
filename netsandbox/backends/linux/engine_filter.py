"""The seccomp filter of the process that inspects requests, built as bytes (pure): an allow list.

The process has connected sockets and a channel, and works on bytes. It needs no call that opens a file, makes or
connects a socket, executes a program or starts a process; each of these answers EPERM. Three allowed calls could do
such a thing by an argument, so these are checked:

- `mmap` and `mprotect` make no memory executable;
- `sendto` has no address, and neither `sendto` nor `sendmsg` may use MSG_FASTOPEN, which connects (tcp(7)).
"""

from __future__ import annotations

from netsandbox.backends.linux.seccomp import (
    ALLOW,
    ARCHITECTURE,
    ARGUMENTS,
    EPERM,
    ERRNO,
    KILL_PROCESS,
    NUMBER,
    assemble,
)
from netsandbox.errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.backends.linux.seccomp import Step

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
PROT_EXEC, MSG_FASTOPEN = 0x4, 0x20000000
HIGH_WORD = 4  # bytes behind the low one
# name: (x86_64, aarch64); None: the architecture does not have it
CALLS: dict[str, tuple[int | None, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getpid": (39, 172),
    "recvfrom": (45, 207),
    "recvmsg": (47, 212),
    "shutdown": (48, 210),
    "getsockname": (51, 204),
    "getsockopt": (55, 209),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "gettid": (186, 178),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "epoll_ctl": (233, 21),
    "ppoll": (271, 73),
    "epoll_pwait": (281, 22),
    "getrandom": (318, 278),
    "epoll_pwait2": (441, 441),
}
ONLY_X86 = {"poll": 7, "epoll_wait": 232}
CHECKED = {"mmap": (9, 222), "mprotect": (10, 226), "sendto": (44, 206), "sendmsg": (46, 211)}


def engine_filter(machine: str) -> bytes:
    """The filter for the architecture of `uname -m`."""
    if machine not in ARCHITECTURES:
        raise HostError(f"no seccomp filter for {machine}; inspection runs on x86_64 and aarch64")
    column, architecture = ARCHITECTURES[machine]
    allowed = [number for numbers in CALLS.values() if (number := numbers[column]) is not None]
    if machine == "x86_64":
        allowed += ONLY_X86.values()
    steps: list[Step] = [("load", ARCHITECTURE), ("equal", architecture, None, "kill"), ("load", NUMBER)]
    steps += [("equal", numbers[column], name, None) for name, numbers in CHECKED.items()]
    steps += [("equal", number, "allow", None) for number in allowed]
    steps.append(("return", ERRNO | EPERM))
    for name in ("mmap", "mprotect"):
        steps += [("label", name), _argument(2), ("any-bit", PROT_EXEC, "perm", "allow")]
    steps += [("label", "sendmsg"), _argument(2), ("any-bit", MSG_FASTOPEN, "perm", "allow")]
    steps += [
        ("label", "sendto"),
        _argument(3),
        ("any-bit", MSG_FASTOPEN, "perm", None),
        _argument(4),
        ("equal", 0, None, "perm"),
        ("load", ARGUMENTS + 8 * 4 + HIGH_WORD),
        ("equal", 0, "allow", "perm"),
        ("label", "allow"),
        ("return", ALLOW),
        ("label", "perm"),
        ("return", ERRNO | EPERM),
        ("label", "kill"),
        ("return", KILL_PROCESS),
    ]
    return assemble(steps)


def _argument(index: int) -> Step:
    return ("load", ARGUMENTS + 8 * index)
