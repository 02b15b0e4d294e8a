"""The table of mounts, and the other names that it gives a path."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsandbox.backends.linux.mount_names import Mount, other_names, read_mounts

DISK, OTHER = b"8:1", b"8:2"


def test_a_line_is_read_with_its_escapes() -> None:
    line = rb"36 35 98:0 /mnt\0401 /mnt/a\134b\011c rw,noatime master:1 - ext3 /dev/root rw"
    assert read_mounts(line + b"\n") == (Mount(b"98:0", "/mnt 1", "/mnt/a\\b\tc"),)


def test_the_kernels_own_lines_are_read() -> None:
    with open("/proc/self/mountinfo", "rb") as file:
        data = file.read()
    mounts = read_mounts(data)
    assert len(mounts) == len(data.splitlines())
    assert any(mount.point == "/proc" for mount in mounts)


@given(st.binary().filter(lambda name: b"\0" not in name))
def test_any_name_survives_the_kernels_way_to_write_it(name: bytes) -> None:
    written = b"".join(b"\\%03o" % byte if byte in b" \t\n\\" else bytes([byte]) for byte in name)
    assert read_mounts(b"1 2 8:1 /" + written + b" /p rw - x x x")[0].root == "/" + os.fsdecode(name)


@pytest.mark.parametrize(
    ("path", "mounts", "expected"),
    [
        ("/home/me/.ssh", [("/", "/")], []),
        ("/home/me/.ssh", [("/", "/"), ("/", "/mnt/disk")], [("/mnt/disk/home/me/.ssh", "/home/me/.ssh")]),
        ("/home/me/.ssh", [("/", "/"), ("/home", "/data")], [("/data/me/.ssh", "/home/me/.ssh")]),
        ("/home/me/.ssh", [("/", "/"), ("/home/me/.ssh/keys", "/k")], [("/k", "/home/me/.ssh/keys")]),
        ("/home/me/.ssh", [("/", "/"), ("/home/me/.ssh", "/k")], [("/k", "/home/me/.ssh")]),
        ("/home/me/.ssh", [("/", "/"), ("/home/you", "/k")], []),
        ("/home/me/.ssh", [("/@", "/"), ("/@home", "/home"), ("/", "/top")], [("/top/@home/me/.ssh", "/home/me/.ssh")]),
    ],
)
def test_a_second_mount_of_the_same_disk_is_a_second_name(
    path: str, mounts: list[tuple[str, str]], expected: list[tuple[str, str]]
) -> None:
    assert list(other_names(path, [Mount(DISK, *mount) for mount in mounts])) == expected


def test_another_disk_is_no_second_name() -> None:
    mounts = [Mount(DISK, "/", "/"), Mount(OTHER, "/", "/mnt"), Mount(OTHER, "/home", "/home2")]
    assert list(other_names("/home/me", mounts)) == []
    assert list(other_names("/mnt/home/me", mounts)) == [("/home2/me", "/mnt/home/me")]


def test_of_two_mounts_at_one_point_the_later_one_is_seen() -> None:
    mounts = [Mount(DISK, "/", "/"), Mount(DISK, "/a", "/m"), Mount(OTHER, "/b", "/m"), Mount(OTHER, "/", "/o")]
    assert list(other_names("/m/x", mounts)) == [("/o/b/x", "/m/x")]
