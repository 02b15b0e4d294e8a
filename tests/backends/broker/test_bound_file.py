"""The file that a Unix socket is bound to, as the kernel has it (native/bound_file.c). No other is taken for it."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.native_units import Library

Find = Callable[[socket.socket], "tuple[int, int] | None"]


class BoundFile(ctypes.Structure):
    _fields_ = (("inode", ctypes.c_uint32), ("device", ctypes.c_uint32))


@pytest.fixture
def find(library: Library) -> Find:
    unit = library("bound_file.c")

    def ask(bound: socket.socket) -> tuple[int, int] | None:
        into = BoundFile()
        return (into.inode, into.device) if unit.find_bound_file(bound.fileno(), ctypes.byref(into)) else None

    return ask


def file_of(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_ino & 0xFFFFFFFF, os.major(found.st_dev) << 20 | os.minor(found.st_dev)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET])
def test_the_file_stays_the_sockets_own_whatever_has_its_name(find: Find, short_tmp: Path, kind: int) -> None:
    path, other = short_tmp / "socket", short_tmp / "other"
    with socket.socket(socket.AF_UNIX, kind) as bound, socket.socket(socket.AF_UNIX, kind) as second:
        bound.bind(str(path))
        second.bind(str(other))
        own = file_of(path)
        assert find(bound) == own
        assert find(second) == file_of(other) != own
        other.rename(path)  # what a race puts there
        assert find(bound) == own != file_of(path)
        path.unlink()
        assert find(bound) == own


def test_a_socket_without_a_file_has_none(find: Find) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        assert find(made) is None
        made.bind("\0netsandbox-test-bound-file")
        assert find(made) is None
    with socket.socket(socket.AF_INET) as other:
        assert find(other) is None
