"""The table of calls about files, against the kernel's own headers."""

from __future__ import annotations

import struct

import pytest

from netsandbox.backends.linux.seccomp import syscall_table
from netsandbox.backends.namespaces.file_calls import call_rows, observed_calls
from tests.backends.linux.test_seccomp import HEADERS, numbers_of

NEWER_THAN_SOME_HEADERS = {"fchmodat2"}


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_every_number_is_the_kernels(machine: str) -> None:
    header, ours = numbers_of(machine), {call.name: number for number, call in observed_calls(machine).items()}
    known = {name: number for name, number in ours.items() if name not in NEWER_THAN_SOME_HEADERS or name in header}
    assert known == {name: header.get(name) for name in known}


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_no_call_is_left_out_that_this_machine_has(machine: str) -> None:
    """What x86_64 has twice, by a path and by a descriptor and a path, aarch64 has once."""
    names = {call.name for call in observed_calls(machine).values()}
    every = {call.name for call in observed_calls("x86_64").values()}
    assert every - names == {name for name in every if name not in numbers_of(machine)} - NEWER_THAN_SOME_HEADERS


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_no_call_is_watched_that_is_judged_otherwise(machine: str) -> None:
    assert not set(observed_calls(machine)) & set(syscall_table(machine).calls.values())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_observer_gets_every_path_of_every_call(machine: str) -> None:
    """struct path_row of native/traps.h; rows of one call follow one another."""
    calls = observed_calls(machine)
    rows = list(struct.iter_unpack("=HcBBBBB", call_rows(calls)))
    assert [row[0] for row in rows] == [number for number, call in calls.items() for _ in call.paths]
    assert len(rows) <= 128
    assert max(calls) < 512
    by_name = {calls[row[0]].name: row[1:] for row in rows}
    assert by_name["openat"] == (b"o", 1, 0, 2, 1, 0)
    assert by_name["openat2"][0] == b"h"
    assert by_name["unlinkat"] == (b"u", 1, 0, 255, 0, 0)
    assert by_name["renameat2"] == (b"n", 3, 2, 255, 0, 0)  # the second of its rows
    assert by_name["execve"] == (b"x", 0, 255, 255, 1, 0)
    asked = {row[0]: row[-1] for row in struct.iter_unpack("=HcBBBBB", call_rows(calls, asks=True))}
    names = {calls[number].name for number, tells in asked.items() if tells}
    assert {asked[number] for number in asked} == {0, 2}
    assert names <= {"open", "openat", "creat", "execve"}
    assert "openat" in names
    told = list(struct.iter_unpack("=HcBBBBB", call_rows(calls, tells=True)))
    assert [row[:-1] for row in told] == [row[:-1] for row in rows]
    assert {row[-1] for row in told} == {1}
