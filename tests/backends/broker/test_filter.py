"""The broker's filters, judged call by call by a BPF machine of our own.

What the broker adds is compared with a table written by hand; every other call gets the answer of the filter for
namespaces, which has tests of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.broker import filter
from netsandbox.backends.linux import seccomp
from netsandbox.backends.linux.seccomp import syscall_table
from tests.backends.linux.test_seccomp import ALLOW, ENOSYS, EPERM, KILL, MACHINES, NOTIFY, numbers_of

DONE, ENOPROTOOPT = 0x00050000, 0x0005005C
PLAIN, SIGNALS, TRUNCATION = range(3)
FASTOPEN = 0x20000000
LOW = 2**32 - 1

machines = pytest.mark.parametrize("machine", sorted(MACHINES))
needs = pytest.mark.parametrize("needs", [PLAIN, SIGNALS, TRUNCATION], ids=["abi-6", "abi-3", "abi-1"])

# By number, from the kernel's tables.
CALLS = {
    "x86_64": {
        **{"socket": 41, "connect": 42, "bind": 49, "listen": 50, "getsockname": 51, "getpeername": 52},
        **{"sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "sendmmsg": 307, "recvmmsg": 299},
        **{"setsockopt": 54, "getsockopt": 55, "prctl": 157, "truncate": 76, "open": 2, "openat": 257, "openat2": 437},
        **{"kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297},
        **{"pidfd_send_signal": 424, "fcntl": 72, "ioctl": 16, "setpriority": 141, "ioprio_set": 251, "prlimit64": 302},
        **{"sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203, "sched_setattr": 314},
        **{"shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220},
        **{"msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241},
        **{"fanotify_init": 300},
    },
    "aarch64": {
        **{"socket": 198, "connect": 203, "bind": 200, "listen": 201, "getsockname": 204, "getpeername": 205},
        **{"sendto": 206, "recvfrom": 207, "sendmsg": 211, "recvmsg": 212, "sendmmsg": 269, "recvmmsg": 243},
        **{"setsockopt": 208, "getsockopt": 209, "prctl": 167, "truncate": 45, "openat": 56, "openat2": 437},
        **{"kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240},
        **{"pidfd_send_signal": 424, "fcntl": 25, "ioctl": 29, "setpriority": 140, "ioprio_set": 30, "prlimit64": 261},
        **{"sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "sched_setattr": 274},
        **{"shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190, "semop": 193, "semctl": 191, "semtimedop": 192},
        **{"msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187, "mq_open": 180, "mq_unlink": 181},
        **{"fanotify_init": 262},
    },
}
ALWAYS = {"socket", "connect", "bind", "listen", "getsockname", "getpeername", "recvmsg", "recvmmsg"}
SHARED_MEMORY = {"shmget", "shmat", "shmctl"}
ABSENT = {"semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl"}
ABSENT |= {"mq_open", "mq_unlink", "fanotify_init"}
SCHEDULING = {"sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr", "prlimit64"}
TERMINAL = {0x5412, 0x541C, 0x540C, 0x5423}
OWNERS = {0x8901, 0x8902}
SIGNALLING = {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"}
CUTTING = {"truncate", "open", "openat", "openat2"}
ADDRESS_LEVELS = {0, 17, 41}  # IP, UDP, IPv6

Arguments = tuple[int, ...]


def expected(name: str, arguments: Arguments, needs: int) -> int:
    """The rules of the broker in words."""
    values = [value & LOW for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    if name in ALWAYS | SHARED_MEMORY:
        return NOTIFY
    if name in ABSENT:
        return ENOSYS
    if name in SCHEDULING | {"setpriority", "ioprio_set"}:
        return _scheduling(name, arguments, values)
    if name == "ioctl":
        return EPERM if values[1] in TERMINAL | OWNERS else ALLOW
    if name == "fcntl":
        return {8: NOTIFY, 10: EPERM, 15: EPERM}.get(values[1], ALLOW)
    if name in SIGNALLING:
        return ALLOW if needs == PLAIN else NOTIFY
    if name in CUTTING:
        return _cutting(name, values) if needs == TRUNCATION else ALLOW
    if name == "prctl":
        return DONE if values[0] == 4 else ALLOW
    if name in ("setsockopt", "getsockopt"):
        return _option(name, values[1], values[2])
    flags = values[{"sendto": 3, "sendmsg": 2, "sendmmsg": 3}.get(name, 5)]
    if name != "recvfrom" and flags & FASTOPEN:
        return EPERM
    if name in ("sendmsg", "sendmmsg"):
        return NOTIFY
    return NOTIFY if (*arguments, 0, 0, 0, 0, 0)[4] & (2**64 - 1) else ALLOW


def _scheduling(name: str, arguments: Arguments, values: list[int]) -> int:
    """0 is the caller itself; prlimit(2) without new limits only reads."""
    if name in ("setpriority", "ioprio_set"):
        if values[0] != (0 if name == "setpriority" else 1):
            return EPERM
        return NOTIFY if values[1] else ALLOW
    if name == "prlimit64" and not (*arguments, 0, 0, 0)[2] & (2**64 - 1):
        return ALLOW
    return NOTIFY if values[0] else ALLOW


def _cutting(name: str, values: list[int]) -> int:
    if name in ("truncate", "openat2"):
        return EPERM if name == "truncate" else ENOSYS
    flags = values[1 if name == "open" else 2]
    return EPERM if flags & 0o1000 and not flags & 0o3 else ALLOW


def _option(name: str, level: int, option: int) -> int:
    if level in ADDRESS_LEVELS:
        return NOTIFY
    if name == "getsockopt":
        return NOTIFY if level == 1 and option in (3, 38, 39) else ALLOW
    if (level, option) in ((1, 25), (1, 62)):
        return EPERM
    return ENOPROTOOPT if (level, option) == (6, 30) else ALLOW


@pytest.fixture(scope="session")
def ask(bpf: Any) -> Callable[..., int]:
    """ask(machine, needs, number, *arguments) -> the answer of that filter."""
    programs = {machine: filter.build_all(machine, syscall_table(machine)) for machine in MACHINES}

    def judge(machine: str, needs: int, number: int, *arguments: int, architecture: int | None = None) -> int:
        answer: int = bpf(programs[machine][needs], number, architecture or MACHINES[machine], arguments)
        return answer

    return judge


@machines
@needs
def test_the_program_is_one_that_the_kernel_takes(machine: str, needs: int) -> None:
    """Whole instructions, at most 4096, jumps only forward and inside, and it ends with a return."""
    steps = list(struct.iter_unpack("<HBBI", filter.build_all(machine, syscall_table(machine))[needs]))
    assert 0 < len(steps) <= 4096
    assert steps[-1][0] == 0x06
    for at, (code, if_true, if_false, _) in enumerate(steps):
        if code in (0x15, 0x35, 0x45):
            assert at + 1 + max(if_true, if_false) < len(steps)


@pytest.mark.attack(113)
@machines
@needs
def test_a_foreign_abi_gets_nothing(ask: Any, machine: str, needs: int) -> None:
    for architecture in {0x40000003, 0x40000028, 1, LOW, *MACHINES.values()} - {MACHINES[machine]}:
        assert {ask(machine, needs, number, architecture=architecture) for number in range(512)} == {KILL}
    for number in (0x40000000, 0x40000029, 470, 1023, LOW):
        assert ask(machine, needs, number) == ENOSYS


@pytest.mark.attack(233)
@machines
@needs
@pytest.mark.parametrize("arguments", [(), (3, 0, 0), (LOW, 2**64 - 1, 16, 0, 0, 0)], ids=["zeros", "small", "large"])
def test_every_number_gets_its_answer(ask: Any, bpf: Any, machine: str, needs: int, arguments: Arguments) -> None:
    """What the broker does not add is answered as in the other backend."""
    other = seccomp.build(syscall_table(machine))
    names = {number: name for name, number in CALLS[machine].items()}
    for number in range(1024):
        plain = bpf(other, number, MACHINES[machine], arguments)
        wanted = expected(names[number], arguments, needs) if number in names else plain
        assert ask(machine, needs, number, *arguments) == wanted, (number, names.get(number))


@pytest.mark.parametrize("name", sorted({name for calls in CALLS.values() for name in calls}))
@given(
    machine=st.sampled_from(sorted(MACHINES)),
    needs=st.sampled_from([PLAIN, SIGNALS, TRUNCATION]),
    arguments=st.tuples(*[st.one_of(st.integers(0, 70), st.integers(0, 2**64 - 1))] * 6),
    bits=st.sampled_from([0, FASTOPEN, 0o1000, 0o1001, 1 << 32]),
    place=st.integers(0, 5),
)
def test_every_argument_gets_its_answer(
    ask: Any, name: str, machine: str, needs: int, arguments: Arguments, bits: int, place: int
) -> None:
    if name not in CALLS[machine]:
        return
    changed = tuple(value | (bits if number == place else 0) for number, value in enumerate(arguments))
    assert ask(machine, needs, CALLS[machine][name], *changed) == expected(name, changed, needs), changed


@pytest.mark.attack(125)
@machines
@needs
def test_no_socket_is_made_by_the_command_itself(ask: Any, machine: str, needs: int) -> None:
    """Every family, type and protocol is trapped: a socket that the broker did not make could be aimed unseen."""
    for family in (*range(64), LOW):
        for kind in (*range(16), 0o2000001, 0o4002):
            for protocol in (0, 6, 17, 58, 132, 262):
                assert ask(machine, needs, CALLS[machine]["socket"], family, kind, protocol) == NOTIFY


@machines
@needs
def test_an_address_is_seen_in_either_half_of_its_pointer(ask: Any, machine: str, needs: int) -> None:
    for name in ("sendto", "recvfrom"):
        call = CALLS[machine][name]
        for bit in range(64):
            assert ask(machine, needs, call, 3, 0, 0, 0, 1 << bit, 16) == NOTIFY
        assert ask(machine, needs, call, 3, 4096, 10, 0, 0, 16) == ALLOW


@machines
@needs
def test_nothing_connects_by_sending(ask: Any, machine: str, needs: int) -> None:
    """MSG_FASTOPEN connects without connect(2), with an address or without."""
    for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        for address in (0, 4096):
            arguments = [3, 4096, 1, 0, address, 16]
            arguments[place] = FASTOPEN | 0x4000
            assert ask(machine, needs, CALLS[machine][name], *arguments) == EPERM


@machines
@needs
def test_what_a_session_refuses_is_refused_here_too(bpf: Any, machine: str, needs: int) -> None:
    """ptrace without a condition; a call with flags only without them."""
    refused = {101: 0, 59: 0o2}
    program = filter.build_all(machine, syscall_table(machine), refused)[needs]
    assert bpf(program, 101, MACHINES[machine], ()) == EPERM
    assert bpf(program, 59, MACHINES[machine], (0, 0)) == ENOSYS
    assert bpf(program, 59, MACHINES[machine], (0, 0o3)) == ALLOW


@machines
def test_every_number_is_the_kernels(machine: str) -> None:
    header, column = numbers_of(machine), sorted(MACHINES, reverse=True).index(machine)
    tables = {**filter.NUMBERS, **filter.CUTTING, **filter.SHARED_MEMORY, **filter.ABSENT}
    ours = {name: both[column] for name, both in tables.items()}
    assert ours == {name: header.get(name) for name in ours}
    assert {name: CALLS[machine][name] for name in ours} == ours
