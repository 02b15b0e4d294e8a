"""The system call numbers, against the kernel's own headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netsandbox.backends.namespaces.syscalls import abi_of
from netsandbox.errors import HostError

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
    header, ours = numbers_of(machine), abi_of(machine).calls
    known = {name: number for name, number in ours.items() if name not in NEWER_THAN_SOME_HEADERS or name in header}
    assert known == {name: header.get(name) for name in known}


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_every_call_is_filtered_refused_or_absent_exactly_once(machine: str) -> None:
    abi = abi_of(machine)
    judged = {"socket", "socketpair", "bind", "connect", "listen", "clone", "unshare", "ioctl"}
    judged |= {"setpriority", "ioprio_set"}
    assert sorted([*abi.refused, *abi.absent, *judged]) == sorted(abi.calls)
    assert len(set(abi.calls.values())) == len(abi.calls)


@pytest.mark.parametrize("machine", ["i686", "armv7l", "riscv64", "s390x", ""])
def test_an_architecture_without_numbers_is_refused(machine: str) -> None:
    with pytest.raises(HostError, match="runs on"):
        abi_of(machine)
