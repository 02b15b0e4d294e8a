"""The table of calls about files, against the kernel's own headers, and what an open does by its flags."""

from __future__ import annotations

import os
import struct

import pytest

from netsandbox.backends.namespaces.file_calls import (
    CHANGE,
    FOLDER,
    MAKE,
    READ,
    call_rows,
    file_calls,
    follows,
    observed_calls,
    opened,
)
from netsandbox.backends.namespaces.seccomp import syscall_table
from tests.backends.namespaces.test_seccomp import HEADERS, numbers_of

NEWER_THAN_SOME_HEADERS = {"fchmodat2"}
CREATE, WRITE = os.O_CREAT, os.O_WRONLY


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_every_number_is_the_kernels(machine: str) -> None:
    header, ours = numbers_of(machine), {call.name: number for number, call in file_calls(machine).items()}
    known = {name: number for name, number in ours.items() if name not in NEWER_THAN_SOME_HEADERS or name in header}
    assert known == {name: header.get(name) for name in known}


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_no_call_is_left_out_that_this_machine_has(machine: str) -> None:
    """What x86_64 has twice, by a path and by a descriptor and a path, aarch64 has once."""
    names = {call.name for call in file_calls(machine).values()}
    every = {call.name for call in file_calls("x86_64").values()}
    assert every - names == {name for name in every if name not in numbers_of(machine)} - NEWER_THAN_SOME_HEADERS


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_no_call_is_watched_that_is_judged_otherwise(machine: str) -> None:
    assert not set(file_calls(machine)) & set(syscall_table(machine).calls.values())


@pytest.mark.parametrize(
    ("flags", "there", "missing", "folder"),
    [
        (os.O_RDONLY, READ, READ, READ),
        (os.O_RDONLY | os.O_CLOEXEC, READ, READ, READ),
        (WRITE, CHANGE, READ, READ),
        (os.O_RDWR, CHANGE, READ, READ),
        (os.O_RDONLY | os.O_TRUNC, CHANGE, READ, READ),
        (CREATE, READ, MAKE, READ),
        (CREATE | WRITE, CHANGE, MAKE, READ),
        (CREATE | WRITE | os.O_EXCL, MAKE, MAKE, MAKE),
        (os.O_TMPFILE | WRITE, None, None, FOLDER),
        (os.O_DIRECTORY, READ, READ, READ),
        (os.O_PATH, None, None, None),
        (os.O_PATH | WRITE, None, None, None),
    ],
)
def test_an_open_does_what_its_flags_and_the_disk_say(
    flags: int, there: str | None, missing: str | None, folder: str | None
) -> None:
    assert opened(flags, exists=True, is_folder=False) == there
    assert opened(flags, exists=False, is_folder=False) == missing
    assert opened(flags, exists=True, is_folder=True) == folder


def test_links_are_followed_as_the_kernel_does() -> None:
    assert [follows(flags) for flags in (0, CREATE, os.O_NOFOLLOW, CREATE | os.O_EXCL, os.O_EXCL)] == [
        True,
        True,
        False,
        False,
        True,
    ]


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
