"""The seccomp filter of the broker backend, built as bytes (pure).

In addition to what `linux.seccomp` refuses, it traps each call by which a socket is made, aimed or named:

- `socket`, always: the broker makes it, so that no socket exists which it does not know;
- `connect`, `bind`, `listen`, `getsockname`, `getpeername`;
- `sendto` and `recvfrom` with an address, `sendmsg`, `sendmmsg`, `recvmsg`, `recvmmsg`, for the stand-ins of UDP. On
  all other sockets they continue, since none that the command has can be aimed by a message;
- shared memory of System V, which would be the host's. Semaphores and queues are refused, and so are queues of POSIX;
- options at the levels of IP and UDP, and what kind of socket it is: a stand-in has neither.

The command is among the host's processes, so calls that set the limits or the schedule of another process are trapped,
and the broker lets those go on that mean a process of the session. Landlock does not know them.

It refuses `MSG_FASTOPEN` and `TCP_FASTOPEN_CONNECT`, which connect without `connect`; `SO_BINDTODEVICE`, which takes a
socket off the loopback; and MPTCP, which Landlock does not know. `PR_SET_DUMPABLE` succeeds without effect: the broker
cannot look into a process that is not dumpable, so the calls of such a process would all be refused.
"""

from __future__ import annotations

from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.seccomp import ALLOW, ERRNO, KILL_PROCESS, MAX_CALL, NOTIFY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from netsandbox.backends.linux.seccomp import Step, SyscallTable

EPERM, ENOSYS, ENOPROTOOPT = 1, 38, 92
MSG_FASTOPEN = 0x20000000
SOL_IP, SOL_SOCKET, SOL_TCP, SOL_UDP, SOL_IPV6 = 0, 1, 6, 17, 41
SO_TYPE, SO_BINDTODEVICE, SO_PROTOCOL, SO_DOMAIN, SO_BINDTOIFINDEX = 3, 25, 38, 39, 62
TCP_FASTOPEN_CONNECT = 30
PR_SET_DUMPABLE = 4
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15
OWNERS = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP
# name: (x86_64, aarch64)
NUMBERS = {
    "getsockname": (51, 204),
    "getpeername": (52, 205),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "setsockopt": (54, 208),
    "getsockopt": (55, 209),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "sendmmsg": (307, 269),
    "recvmmsg": (299, 243),
    "prctl": (157, 167),
    "fcntl": (72, 25),
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
# shmget(2); the broker makes these segments
SHARED_MEMORY = {"shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195)}
# Landlock knows none of them: semaphores and queues are the host's, and fanotify reports what happens to files that are
# closed.
ABSENT = {
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "fanotify_init": (300, 262),
}
CUTTING = {"truncate": (76, 45), "openat2": (437, 437)}
O_ACCMODE, O_TRUNC = 0o3, 0o1000
TRAPPED = ("recvmsg", "recvmmsg", "getsockname", "getpeername")
BY_ARGUMENTS = ("sendmsg", "sendmmsg", "sendto", "recvfrom", "setsockopt", "getsockopt", "prctl", "prlimit64", "fcntl")
SCHEDULES = ("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")


def build_all(machine: str, abi: SyscallTable, refused: Mapping[int, int] = {}) -> tuple[bytes, bytes, bytes]:
    """The filters for kernels whose Landlock scopes signals (ABI 6), restricts truncation (ABI 3), and does neither."""
    return (
        build(machine, abi, refused=refused),
        build(machine, abi, signals=True, refused=refused),
        build(machine, abi, signals=True, truncation=True, refused=refused),
    )


def build(
    machine: str,
    abi: SyscallTable,
    *,
    signals: bool = False,
    truncation: bool = False,
    refused: Mapping[int, int] = {},
) -> bytes:
    """One filter. It traps who gets the signals of a descriptor, and with *signals* other signals too. With
    *truncation* it refuses to cut a file by its path, and to open one for reading and cut it: Landlock would not.
    *refused*: as `seccomp.build` takes them."""
    column = 0 if machine == "x86_64" else 1
    numbers = {name: both[column] for name, both in NUMBERS.items()}
    calls = abi.calls
    steps: list[Step] = [("load", seccomp.ARCHITECTURE), ("equal", abi.audit_architecture, None, "kill")]
    steps += [("load", seccomp.NUMBER), ("at-least", MAX_CALL + 1, "nosys", None)]
    steps += [("equal", calls[name], "perm", None) for name in abi.refused]
    steps += [("equal", number, f"flags-{flags}" if flags else "perm", None) for number, flags in refused.items()]
    steps += [("equal", calls[name], "nosys", None) for name in abi.absent]
    steps += [("equal", calls[name], "notify", None) for name in ("socket", "connect", "bind", "listen")]
    steps += [("equal", both[column], "nosys", None) for both in ABSENT.values()]
    steps += [("equal", both[column], "notify", None) for both in SHARED_MEMORY.values()]
    steps += [("equal", numbers[name], "notify", None) for name in (*TRAPPED, *(SIGNALS if signals else ()))]
    steps += [("equal", numbers[name], name, None) for name in BY_ARGUMENTS]
    steps += [("equal", numbers[name], "others", None) for name in SCHEDULES]
    if truncation:
        cuts = {name: both[column] for name, both in CUTTING.items()}
        steps += [("equal", cuts["truncate"], "perm", None), ("equal", cuts["openat2"], "nosys", None)]
        steps += [("equal", number, name, None) for name, number in abi.opens.items()]
    checked = ("socketpair", "clone", "unshare", "ioctl", "setpriority", "ioprio_set")
    steps += [("equal", calls[name], name, None) for name in checked]
    steps.append(("return", ALLOW))
    steps += _messages() + _options() + _prctl() + _others()
    steps += seccomp.pair_steps() + _owners()
    steps += seccomp.process_steps(_priorities(), OWNERS)
    for name in abi.opens if truncation else ():
        steps += _open(name)
    for flags in filter(None, refused.values()):
        steps += [("label", f"flags-{flags}"), _argument(1), ("any-bit", flags, "allow", "nosys")]
    for label, action in ACTIONS.items():
        steps += [("label", label), ("return", action)]
    return seccomp.assemble(steps)


ACTIONS = {
    "allow": ALLOW,
    "notify": NOTIFY,
    "perm": ERRNO | EPERM,
    "nosys": ERRNO | ENOSYS,
    "option": ERRNO | ENOPROTOOPT,
    "done": ERRNO,  # success, without the call
    "kill": KILL_PROCESS,
}


def _argument(index: int, *, high: bool = False) -> Step:
    return ("load", seccomp.ARGUMENTS + 8 * index + 4 * high)


def _messages() -> list[Step]:
    """An address is a pointer, so both of its halves are looked at."""
    return [
        ("label", "sendmsg"),
        _argument(2),
        ("any-bit", MSG_FASTOPEN, "perm", "notify"),
        ("label", "sendmmsg"),
        _argument(3),
        ("any-bit", MSG_FASTOPEN, "perm", "notify"),
        ("label", "sendto"),
        _argument(3),
        ("any-bit", MSG_FASTOPEN, "perm", None),
        ("label", "recvfrom"),
        _argument(4),
        ("equal", 0, None, "notify"),
        _argument(4, high=True),
        ("equal", 0, "allow", "notify"),
    ]


def _options() -> list[Step]:
    return [
        ("label", "setsockopt"),
        _argument(1),
        ("equal", SOL_IP, "notify", None),
        ("equal", SOL_IPV6, "notify", None),
        ("equal", SOL_UDP, "notify", None),
        ("equal", SOL_TCP, "tcp-option", None),
        ("equal", SOL_SOCKET, None, "allow"),
        _argument(2),
        ("equal", SO_BINDTODEVICE, "perm", None),
        ("equal", SO_BINDTOIFINDEX, "perm", "allow"),
        ("label", "tcp-option"),
        _argument(2),
        ("equal", TCP_FASTOPEN_CONNECT, "option", "allow"),
        ("label", "getsockopt"),
        _argument(1),
        ("equal", SOL_IP, "notify", None),
        ("equal", SOL_IPV6, "notify", None),
        ("equal", SOL_UDP, "notify", None),
        ("equal", SOL_SOCKET, None, "allow"),
        _argument(2),
        ("equal", SO_TYPE, "notify", None),
        ("equal", SO_PROTOCOL, "notify", None),
        ("equal", SO_DOMAIN, "notify", "allow"),
    ]


def _open(name: str) -> list[Step]:
    """A file that is opened for writing needs Landlock's right to write, whether it is cut or not."""
    return [
        ("label", name),
        _argument(seccomp.OPENS[name]),
        ("any-bit", O_ACCMODE, "allow", None),
        ("any-bit", O_TRUNC, "perm", "allow"),
    ]


def _prctl() -> list[Step]:
    return [("label", "prctl"), _argument(0), ("equal", PR_SET_DUMPABLE, "done", "allow")]


def _others() -> list[Step]:
    """0 is the caller itself. prlimit(2) without new limits only reads."""
    return [
        ("label", "prlimit64"),
        _argument(2),
        ("equal", 0, None, "others"),
        _argument(2, high=True),
        ("equal", 0, "allow", "others"),
        ("label", "others"),
        _argument(0),
        ("equal", 0, "allow", "notify"),
    ]


def _priorities() -> list[Step]:
    """One process by its number. A group may have processes of the host, and a user has."""
    return [
        ("label", "setpriority"),
        _argument(0),
        ("equal", PRIO_PROCESS, "one-process", "perm"),
        ("label", "ioprio_set"),
        _argument(0),
        ("equal", IOPRIO_WHO_PROCESS, "one-process", "perm"),
        ("label", "one-process"),
        _argument(1),
        ("equal", 0, "allow", "notify"),
    ]


def _owners() -> list[Step]:
    """A descriptor sends signals to its owner, so that must be a process of the session. The number of F_SETOWN is an
    argument; the other ways have it in memory."""
    return [
        ("label", "fcntl"),
        _argument(1),
        ("equal", F_SETOWN, "notify", None),
        ("equal", F_SETSIG, "perm", None),
        ("equal", F_SETOWN_EX, "perm", "allow"),
    ]
