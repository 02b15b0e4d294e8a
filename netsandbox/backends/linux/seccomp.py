"""The seccomp filter, built as bytes (pure).

The filter refuses the following, in the order of its checks:

- another ABI (i386, x32): its system call numbers would bypass the rest of the filter;
- numbers above the highest known one: a later kernel may give them calls that undo the rest, so they answer ENOSYS, as
  a kernel does that lacks them;
- new namespaces and all mount calls: a new user namespace would give capabilities back;
- `clone3`: its flags are in memory that the filter cannot read; ENOSYS makes libc fall back to `clone`;
- io_uring: it opens and connects sockets without system calls;
- sockets outside an allow list of family, type and protocol. The list has TCP and UDP over IPv4 and IPv6, rtnetlink
  (read-only without capabilities; interface lists need it), and Unix sockets with connections. Any other call is
  trapped; the supervisor records and refuses it;
- Unix datagram sockets: they can send to any path, so every message would have to be trapped (SOCK_RAW is one too);
- TIOCSTI and TIOCLINUX: they type into the user's terminal;
- TIOCEXCL and TIOCSETD: they close that terminal to other programs, or change its line discipline, beyond the session;
- priorities of a process group: the command is in its caller's group.

connect and bind are always trapped, and the native broker makes them (native/sockets.h): a Unix path is reached through
the file system, so no namespace hides a socket of the host. The filter sees neither the family nor the address.

A filter is a list of `Step`s with labels; `assemble` turns it into `struct sock_filter[]`. System call numbers are
those of the two supported ABIs (asm/unistd.h; both little-endian).
"""

from __future__ import annotations

from netsandbox.errors import HostError
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Step = tuple[str | int | None, ...]

# bpf(2), linux/bpf_common.h
LOAD_WORD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
# struct seccomp_data; the low word of an argument on a little-endian machine
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
ERRNO = 0x00050000
KILL_PROCESS = 0x80000000
EPERM, ENOSYS, EPROTONOSUPPORT = 1, 38, 93

MAX_CALL = 469  # file_setattr of Linux 6.17, the highest number that was looked at
NEW_NAMESPACES = 0x7E020000
CLONE_NEWTIME = 0x80
TYPE_MASK = 0xF
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET = 1, 2, 5
IPPROTO_TCP, IPPROTO_UDP, NETLINK_ROUTE = 6, 17, 0
TERMINAL_CONTROLS = (0x5412, 0x541C, 0x540C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCEXCL, TIOCSETD
PRIO_PGRP, IOPRIO_WHO_PGRP = 1, 2
OPENS = {"open": 1, "openat": 2}  # calls with flags of open(2), and the argument that has them
OPEN_WRITES = 0x1 | 0x2 | 0x40 | 0x200  # O_WRONLY, O_RDWR, O_CREAT and O_TRUNC, the same on both ABIs
# Calls that are decided by their arguments.
CHECKED = ("socket", "socketpair", "clone", "unshare", "ioctl", "setpriority", "ioprio_set")


def build(
    abi: SyscallTable,
    *,
    extra: tuple[str, ...] = (),
    watched: tuple[int, ...] = (),
    skips_listing: bool = False,
    refused: Mapping[int, int] = {},
) -> bytes:
    """The whole filter. Besides connect and bind, the calls named in *extra* and the numbers in *watched* are trapped;
    with *skips_listing* not those that open a folder to list it, of which tools make thousands. Those in *refused* are
    refused; with a value only if their second argument has no bit of it, by ENOSYS, which lets programs do without.
    """
    calls = abi.calls
    steps: list[Step] = [("load", ARCHITECTURE), ("equal", abi.audit_architecture, None, "kill"), ("load", NUMBER)]
    steps.append(("at-least", MAX_CALL + 1, "nosys", None))  # x32 numbers are higher too
    steps += [("equal", calls[name], "perm", None) for name in abi.refused]
    steps += [("equal", number, f"flags-{flags}" if flags else "perm", None) for number, flags in refused.items()]
    steps += [("equal", calls[name], "nosys", None) for name in abi.absent]
    steps += [("equal", calls[name], name, None) for name in CHECKED]
    steps += [("equal", calls[name], "notify", None) for name in trapped(extra)]
    listed = {number: name for name, number in abi.opens.items()} if skips_listing else {}
    steps += [("equal", number, listed.get(number, "notify"), None) for number in watched]
    steps.append(("return", ALLOW))
    steps += _socket() + pair_steps() + process_steps()
    for flags in filter(None, refused.values()):
        steps += [("label", f"flags-{flags}"), _argument(1), ("any-bit", flags, "allow", "nosys")]
    for name in listed.values():
        steps += _open(name, abi.folder_flag)
    steps += [
        ("label", "allow"),
        ("return", ALLOW),
        ("label", "notify"),
        ("return", NOTIFY),
        ("label", "perm"),
        ("return", ERRNO | EPERM),
        ("label", "nosys"),
        ("return", ERRNO | ENOSYS),
        ("label", "protocol"),
        ("return", ERRNO | EPROTONOSUPPORT),
        ("label", "kill"),
        ("return", KILL_PROCESS),
    ]
    return assemble(steps)


def trapped(extra: tuple[str, ...]) -> tuple[str, ...]:
    """The calls that are trapped for all arguments."""
    return ("connect", "bind", "listen") if "listen" in extra else ("connect", "bind")


def _argument(index: int) -> Step:
    return ("load", ARGUMENTS + 8 * index)


def _socket() -> list[Step]:
    return [
        ("label", "socket"),
        _argument(0),
        ("equal", AF_INET, "internet", None),
        ("equal", AF_INET6, "internet", None),
        ("equal", AF_NETLINK, "netlink", None),
        ("equal", AF_UNIX, "connections", "notify"),
        ("label", "netlink"),
        _argument(2),
        ("equal", NETLINK_ROUTE, "allow", "notify"),
        ("label", "internet"),
        _argument(1),
        ("and", TYPE_MASK),
        ("equal", SOCK_STREAM, "tcp", None),
        ("equal", SOCK_DGRAM, "udp", "notify"),
        ("label", "tcp"),
        _argument(2),
        ("equal", 0, "allow", None),
        ("equal", IPPROTO_TCP, "allow", "protocol"),
        ("label", "udp"),
        _argument(2),
        ("equal", 0, "allow", None),
        ("equal", IPPROTO_UDP, "allow", "notify"),
    ]


def pair_steps() -> list[Step]:
    """Pairs of Unix sockets with connections. The label `connections` decides about a type of Unix socket."""
    return [
        ("label", "socketpair"),
        _argument(0),
        ("equal", AF_UNIX, "connections", "notify"),
        ("label", "connections"),
        _argument(1),
        ("and", TYPE_MASK),
        ("equal", SOCK_STREAM, "allow", None),
        ("equal", SOCK_SEQPACKET, "allow", "notify"),
    ]


def process_steps(priorities: list[Step] | None = None, controls: tuple[int, ...] = ()) -> list[Step]:
    """No new namespaces, no control of the user's terminal, none of *controls* by ioctl, no priority of the caller's
    process group; or as *priorities* decide."""
    return _clone() + _unshare() + _ioctl(controls) + (priorities or _priorities())


def _clone() -> list[Step]:
    return [("label", "clone"), _argument(0), ("any-bit", NEW_NAMESPACES, "perm", "allow")]


def _unshare() -> list[Step]:
    return [("label", "unshare"), _argument(0), ("any-bit", NEW_NAMESPACES | CLONE_NEWTIME, "perm", "allow")]


def _ioctl(more: tuple[int, ...]) -> list[Step]:
    *some, last = (*more, *TERMINAL_CONTROLS)
    refused: list[Step] = [("equal", request, "perm", None) for request in some]
    return [("label", "ioctl"), _argument(1), *refused, ("equal", last, "perm", "allow")]


def _priorities() -> list[Step]:
    return [
        ("label", "setpriority"),
        _argument(0),
        ("equal", PRIO_PGRP, "perm", "allow"),
        ("label", "ioprio_set"),
        _argument(0),
        ("equal", IOPRIO_WHO_PGRP, "perm", "allow"),
    ]


def _open(name: str, folder_flag: int) -> list[Step]:
    return [
        ("label", name),
        _argument(OPENS[name]),
        ("any-bit", OPEN_WRITES, "notify", None),
        ("any-bit", folder_flag, "allow", "notify"),
    ]


_JUMPS = {"equal": JUMP_EQUAL, "at-least": JUMP_GREATER_EQUAL, "any-bit": JUMP_SET}
_PLAIN = {"load": LOAD_WORD, "and": AND, "return": RETURN}
MAX_JUMP = 255


def assemble(steps: list[Step]) -> bytes:
    """Resolve the labels. A jump to None falls through."""
    places: dict[str | int | None, int] = {}
    position = 0
    for step in steps:
        if step[0] == "label":
            places[step[1]] = position
        else:
            position += 1
    instructions = (step for step in steps if step[0] != "label")
    return b"".join([_instruction(step, position, places) for position, step in enumerate(instructions)])


def _instruction(step: Step, position: int, places: dict[str | int | None, int]) -> bytes:
    """struct sock_filter: u16 code, u8 jump if true, u8 jump if false, u32 constant."""
    name, constant = str(step[0]), int(step[1] or 0)
    if name in _PLAIN:
        return (_PLAIN[name] | constant << 32).to_bytes(8, "little")
    matched, other = (0 if target is None else places[target] - position - 1 for target in step[2:4])
    if not (0 <= matched <= MAX_JUMP and 0 <= other <= MAX_JUMP):
        raise ValueError(f"a jump of {matched} or {other}")
    return (_JUMPS[name] | matched << 16 | other << 24 | constant << 32).to_bytes(8, "little")


@frozen
class SyscallTable:
    """One kernel ABI: its numbers, and those that are refused with EPERM or ENOSYS."""

    audit_architecture: int
    calls: dict[str, int]
    refused: tuple[str, ...]
    absent: tuple[str, ...]
    opens: dict[str, int]
    folder_flag: int  # O_DIRECTORY


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


def _abi(column: int, audit_architecture: int, opens: dict[str, int], folder_flag: int) -> SyscallTable:
    calls = {name: numbers[column] for name, numbers in _NUMBERS.items()} | _SAME_EVERYWHERE
    refused = tuple(name for name in calls if name not in _FILTERED and name not in _ABSENT)
    return SyscallTable(audit_architecture, calls, refused, _ABSENT, opens, folder_flag)


def syscall_table(machine: str) -> SyscallTable:
    """The ABI of `uname -m`. An architecture without known numbers cannot be confined."""
    if machine == "x86_64":
        return _abi(0, 0xC000003E, {"open": 2, "openat": 257}, 0o200000)
    if machine == "aarch64":
        return _abi(1, 0xC00000B7, {"openat": 56}, 0o40000)
    raise HostError(f"no seccomp filter for {machine}; netsandbox runs on x86_64 and aarch64")
