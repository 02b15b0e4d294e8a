"""The filter, judged call by call by a BPF machine of our own and compared with a table written by hand."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.namespaces.file_calls import observed_calls
from netsandbox.errors import HostError

ALLOW, NOTIFY, KILL = 0x7FFF0000, 0x7FC00000, 0x80000000
EPERM, ENOSYS, EPROTONOSUPPORT = 0x00050001, 0x00050026, 0x0005005D

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386, ARM = 0x40000003, 0x40000028
SOCKET = {"x86_64": 41, "aarch64": 198}
SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
CONNECT_AND_BIND = {"x86_64": {42, 49}, "aarch64": {200, 203}}
TRAPPED = {"x86_64": {"connect": 42, "bind": 49, "listen": 50}, "aarch64": {"connect": 203, "bind": 200, "listen": 201}}
CLONE = {"x86_64": 56, "aarch64": 220}
UNSHARE = {"x86_64": 272, "aarch64": 97}
IOCTL = {"x86_64": 16, "aarch64": 29}
SETPRIORITY = {"x86_64": 141, "aarch64": 140}
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}

# By number, from the kernel's tables: mounts, namespaces, kernel administration, bpf, perf, userfaultfd, handles.
REFUSED = {
    "x86_64": {103, 153, 155, 161, 163, 164, 165, 166, 167, 168, 169, 175, 176, 179, 227, 246, 298}
    | {303, 304, 308, 313, 320, 321, 323, 428, 429, 430, 431, 432, 433, 442, 467},
    "aarch64": {39, 40, 41, 51, 58, 60, 89, 104, 105, 106, 112, 116, 142, 170, 224, 225, 241, 264, 265}
    | {268, 273, 280, 282, 294, 428, 429, 430, 431, 432, 433, 442, 467},
}
HIGHEST = 469  # file_setattr, Linux 6.17
ABSENT = {"x86_64": {248, 249, 250, 425, 426, 427, 435}, "aarch64": {217, 218, 219, 425, 426, 427, 435}}

machines = pytest.mark.parametrize("machine", sorted(MACHINES))

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, DGRAM, SEQPACKET = 1, 2, 5
CLOEXEC, NONBLOCK = 0o2000000, 0o4000


class Filter:
    def __init__(
        self,
        bpf: Any,
        machine: str,
        *,
        extra: tuple[str, ...] = (),
        watched: tuple[int, ...] = (),
    ) -> None:
        self.program = seccomp.build(syscall_table(machine), extra=extra, watched=watched)
        self.machine = machine
        self._bpf = bpf

    def __call__(self, number: int, *arguments: int, architecture: int | None = None) -> int:
        answer: int = self._bpf(self.program, number, architecture or MACHINES[self.machine], arguments)
        return answer


@machines
def test_the_program_is_one_that_the_kernel_takes(bpf: Any, machine: str) -> None:
    """Whole instructions, at most 4096, jumps only forward and inside, and it ends with a return."""
    steps = list(struct.iter_unpack("<HBBI", Filter(bpf, machine).program))
    assert 0 < len(steps) <= 4096
    assert steps[-1][0] == 0x06
    for at, (code, if_true, if_false, _) in enumerate(steps):
        if code in (0x15, 0x35, 0x45):
            assert at + 1 + max(if_true, if_false) < len(steps)
        else:
            assert (if_true, if_false) == (0, 0)


@pytest.mark.attack(233)
@machines
def test_every_number_gets_its_answer(bpf: Any, machine: str) -> None:
    ask = Filter(bpf, machine)
    judged = {SOCKET[machine], SOCKETPAIR[machine], CLONE[machine], UNSHARE[machine], IOCTL[machine]}
    for number in range(1024):
        if number in judged:
            continue
        is_absent = number in ABSENT[machine] or number > HIGHEST
        expected = EPERM if number in REFUSED[machine] else ENOSYS if is_absent else ALLOW
        if number in CONNECT_AND_BIND[machine]:
            expected = NOTIFY
        assert ask(number) == expected, number


@pytest.mark.attack(113)
@machines
def test_a_foreign_abi_gets_nothing(bpf: Any, machine: str) -> None:
    """113: i386, arm and the other machine's calls kill; x32 numbers do not exist."""
    ask = Filter(bpf, machine)
    for architecture in {I386, ARM, 0, 0xFFFFFFFF, *MACHINES.values()} - {MACHINES[machine]}:
        assert {ask(number, architecture=architecture or 1) for number in range(512)} == {KILL}
    if machine == "x86_64":
        assert {ask(0x40000000 | number) for number in range(1024)} == {ENOSYS}
        assert ask(0xFFFFFFFF) == ENOSYS


def expected_socket(family: int, kind: int, protocol: int) -> int:
    """The allow list in words: TCP, UDP, rtnetlink, and Unix sockets with connections."""
    kind &= 0xF
    if family in (INET, INET6) and kind == STREAM:
        return ALLOW if protocol in (0, 6) else EPROTONOSUPPORT
    if family in (INET, INET6) and kind == DGRAM:
        return ALLOW if protocol in (0, 17) else NOTIFY
    if family == NETLINK:
        return ALLOW if protocol == 0 else NOTIFY
    if family == UNIX and kind in (STREAM, SEQPACKET):
        return ALLOW
    return NOTIFY


@pytest.mark.attack(125)
@machines
def test_sockets_are_let_through_by_an_allow_list(bpf: Any, machine: str) -> None:
    """125: every family there may be, every type with flags, the protocols that matter (ICMP, MPTCP, SCTP, raw)."""
    ask = Filter(bpf, machine)
    for family in (*range(64), 0xFFFFFFFF, 0x10002):
        for kind in range(16):
            for protocol in (0, 1, 2, 6, 12, 15, 16, 17, 58, 132, 136, 255, 262, 0xFFFFFFFF):
                expected = expected_socket(family, kind, protocol)
                for flags in (0, CLOEXEC | NONBLOCK):
                    assert ask(SOCKET[machine], family, kind | flags, protocol) == expected, (family, kind, protocol)


@machines
def test_socket_pairs_are_streams_or_nothing(bpf: Any, machine: str) -> None:
    ask = Filter(bpf, machine)
    for family in range(64):
        for kind in range(16):
            expected = ALLOW if family == UNIX and kind in (STREAM, SEQPACKET) else NOTIFY
            assert ask(SOCKETPAIR[machine], family, kind | CLOEXEC, 0) == expected


@pytest.mark.attack(121)
@machines
def test_no_flag_of_clone_or_unshare_makes_a_namespace(bpf: Any, machine: str) -> None:
    ask = Filter(bpf, machine)
    kinds = {0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000}
    for bit in (1 << shift for shift in range(32)):
        wanted = EPERM if bit in kinds else ALLOW
        assert ask(CLONE[machine], bit | 17 if bit > 0xFF else bit) == wanted
        assert ask(UNSHARE[machine], bit) == (EPERM if bit == 0x80 else wanted)
    thread = 0x3D0F00
    assert ask(CLONE[machine], thread) == ALLOW


@machines
def test_nothing_types_into_the_terminal(bpf: Any, machine: str) -> None:
    """The kernel looks at 32 bits of the request, and so do we: garbage above them hides nothing."""
    ask = Filter(bpf, machine)
    for request in (0x5412, 0x541C):
        assert ask(IOCTL[machine], 0, request) == EPERM
        assert ask(IOCTL[machine], 0, 0xABCD << 32 | request) == EPERM
    for request in (0x5401, 0x5413, 0x5411, 0x541B, 0x5421, 0):
        assert ask(IOCTL[machine], 0, request) == ALLOW


@given(high=st.integers(0, 2**32 - 1), family=st.integers(0, 2**32 - 1), kind=st.integers(0, 2**32 - 1))
def test_bits_that_the_kernel_ignores_are_ignored(bpf: Any, high: int, family: int, kind: int) -> None:
    """socket(2) takes ints: the upper half of a register must not turn a no into a yes, nor the reverse."""
    program = seccomp.build(syscall_table("x86_64"))
    plain = bpf(program, 41, MACHINES["x86_64"], (family, kind, 0))
    assert bpf(program, 41, MACHINES["x86_64"], (high << 32 | family, high << 32 | kind, high << 32)) == plain
    assert plain == expected_socket(family, kind, 0)


@machines
def test_priorities_of_the_callers_group_are_not_ours_to_set(bpf: Any, machine: str) -> None:
    judge = Filter(bpf, machine)
    for call, group in ((SETPRIORITY[machine], 1), (IOPRIO_SET[machine], 2)):
        assert [judge(call, which, 0, 19) == EPERM for which in range(4)] == [which == group for which in range(4)]


@machines
@pytest.mark.parametrize("extra", [(), ("listen",), ("bind", "listen"), ("bind",), ("connect",)], ids=",".join)
def test_calls_that_are_asked_for_are_notified_and_no_others(bpf: Any, machine: str, extra: tuple[str, ...]) -> None:
    """INV-7: with a guard every bind and every listen comes to the supervisor, whatever its arguments."""
    ask = Filter(bpf, machine, extra=extra)
    expected = {TRAPPED[machine][name] for name in extra} | CONNECT_AND_BIND[machine]
    trapped = set(TRAPPED[machine].values())
    for number in trapped:
        for arguments in ((), (3, 0, 0), (0xFFFFFFFF, 2**64 - 1, 16)):
            assert ask(number, *arguments) == (NOTIFY if number in expected else ALLOW), number
    judged = {SOCKET[machine], SOCKETPAIR[machine]}
    assert all(ask(number) != NOTIFY for number in set(range(480)) - trapped - judged)


@machines
def test_a_filter_that_asks_for_everything_is_one_that_the_kernel_takes(bpf: Any, machine: str) -> None:
    """Jumps are bytes: too long a filter would be an error here, not a jump to somewhere else."""
    extra = ("connect", "bind", "listen")
    watched = tuple(observed_calls(machine))
    everything = Filter(bpf, machine, extra=extra, watched=watched)
    steps = list(struct.iter_unpack("<HBBI", everything.program))
    for at, (code, if_true, if_false, _) in enumerate(steps):
        if code in (0x15, 0x35, 0x45):
            assert at + 1 + max(if_true, if_false) < len(steps)


@machines
def test_watching_files_adds_notices_and_changes_no_other_answer(bpf: Any, machine: str) -> None:
    """A call that is refused, or judged by its arguments, stays so."""
    plain = Filter(bpf, machine, extra=("listen",))
    numbers = tuple(observed_calls(machine))
    watching = Filter(bpf, machine, extra=("listen",), watched=numbers)
    for number in range(1024):
        for arguments in ((), (3, 0, 0), (0xFFFFFFFF, 2**64 - 1, 16)):
            before = plain(number, *arguments)
            assert watching(number, *arguments) == (NOTIFY if number in numbers else before), number
            assert number not in numbers or before == ALLOW, number


@machines
def test_of_observed_opens_only_listings_go_on_unseen(bpf: Any, machine: str) -> None:
    """And every other observed call is trapped, those that execute too."""
    abi, watched = syscall_table(machine), tuple(observed_calls(machine))
    program = seccomp.build(abi, extra=("connect", "bind", "listen"), watched=watched, skips_listing=True)
    position = {"open": 1, "openat": 2}
    for name, number in abi.opens.items():
        for writes in (0, 0x1, 0x2, 0x40, 0x200, 0x241):
            for folder in (0, abi.folder_flag):
                arguments = [0] * 6
                arguments[position[name]] = writes | folder | 0x80000
                wanted = ALLOW if folder and not writes else NOTIFY
                assert bpf(program, number, MACHINES[machine], arguments) == wanted, (name, writes, folder)
    for number in set(watched) - set(abi.opens.values()):
        assert bpf(program, number, MACHINES[machine], (0, abi.folder_flag, abi.folder_flag)) == NOTIFY


# The first is this distribution's x86_64 header; asm-generic is what aarch64 uses.
HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}
NEWER_THAN_SOME_HEADERS = {"open_tree_attr"}


def numbers_of(machine: str) -> dict[str, int]:
    for path in map(Path, HEADERS[machine]):
        if path.exists():
            defined = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", path.read_text(), re.MULTILINE)
            return {name: int(number) for name, number in defined}
    pytest.skip(f"no kernel header for {machine} (package linux-libc-dev)")


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_every_number_is_the_kernels(machine: str) -> None:
    header, ours = numbers_of(machine), syscall_table(machine).calls
    known = {name: number for name, number in ours.items() if name not in NEWER_THAN_SOME_HEADERS or name in header}
    assert known == {name: header.get(name) for name in known}


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_every_call_is_filtered_refused_or_absent_exactly_once(machine: str) -> None:
    abi = syscall_table(machine)
    judged = {"socket", "socketpair", "bind", "connect", "listen", "clone", "unshare", "ioctl"}
    judged |= {"setpriority", "ioprio_set"}
    assert sorted([*abi.refused, *abi.absent, *judged]) == sorted(abi.calls)
    assert len(set(abi.calls.values())) == len(abi.calls)


@pytest.mark.parametrize("machine", ["i686", "armv7l", "riscv64", "s390x", ""])
def test_an_architecture_without_numbers_is_refused(machine: str) -> None:
    with pytest.raises(HostError, match="runs on"):
        syscall_table(machine)
