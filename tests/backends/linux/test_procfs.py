"""What /proc tells about a process, read from this one: whatever it calls itself, and when it is gone."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
import threading

import pytest

from netsandbox.backends.linux import procfs
from tests.rig.waiting import wait_for

PR_SET_NAME = 15


def in_a_thread_called(name: bytes) -> tuple[int, int | Exception]:
    """The number of a thread of this name, and what `process_of` makes of it."""
    found: list[tuple[int, int | Exception]] = []

    def look() -> None:
        ctypes.CDLL(None).prctl(PR_SET_NAME, name, 0, 0, 0)
        thread = threading.get_native_id()
        try:
            found.append((thread, procfs.process_of(thread)))
        except Exception as error:
            found.append((thread, error))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize(
    "name",
    [b"plain", b"\xff\xfe", b"cut in two \xe3\x82", b"Tgid:\t1", b"x\nTgid:\t1", b"x\rTgid:\t1", b"x\x85Tgid:\t1"],
    ids=["plain", "no-utf8", "cut-utf8", "tgid", "line-feed", "carriage-return", "next-line"],
)
def test_a_thread_belongs_to_its_process_whatever_it_is_called(name: bytes) -> None:
    """The kernel cuts names at 15 bytes, in the middle of a letter too, and escapes the line feed only."""
    thread, process = in_a_thread_called(name)
    assert thread != os.getpid()
    assert process == os.getpid()


@pytest.mark.parametrize("separator", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_name_cannot_write_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    """Lines end where the kernel ends them, not at everything that Unicode calls a line."""
    monkeypatch.setattr(procfs, "read", lambda path: f"Name:\tx{separator}Tgid:\t1\nUmask:\t0022\nTgid:\t77\n")
    assert procfs.process_of(78) == 77


def test_a_process_that_is_gone_is_an_error() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)):
        procfs.process_of(child.pid)


def test_a_status_without_its_line_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "read", lambda path: "Name:\tx\nState:\tR\n")
    with pytest.raises(ProcessLookupError):
        procfs.process_of(1)


def test_the_inode_is_that_of_the_socket_behind_the_descriptor() -> None:
    with socket.socket() as sock:
        inode = str(os.fstat(sock.fileno()).st_ino)
        assert procfs.socket_inode(os.getpid(), sock.fileno()) == inode
        with socket.fromfd(sock.fileno(), sock.family, sock.type) as copy:
            assert procfs.socket_inode(os.getpid(), copy.fileno()) == inode
    assert procfs.socket_inode(os.getpid(), sock.fileno()) is None


def test_what_is_no_socket_has_none() -> None:
    for descriptor in os.pipe():
        assert procfs.socket_inode(os.getpid(), descriptor) is None
        os.close(descriptor)
    assert procfs.socket_inode(os.getpid(), 0xFFFFFFFF) is None
    assert procfs.socket_inode(2**31 - 1, 0) is None


def test_a_file_that_is_called_like_a_socket_is_none(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path begins with a slash, so it cannot look like the kernel's own words."""
    monkeypatch.chdir(str(tmp_path))
    with open("socket:[1]", "wb") as file:
        assert procfs.socket_inode(os.getpid(), file.fileno()) is None


FAMILY = """
import subprocess, sys, threading
def start():
    children.append(subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE))
children = []
start()
thread = threading.Thread(target=lambda: (start(), done.set(), sys.stdin.read()))
done = threading.Event()
thread.start()
done.wait()
print("up", flush=True)
thread.join()
for child in children:
    child.stdin.close()
"""


def test_the_usage_of_a_session_is_that_of_all_below_its_first_process() -> None:
    """Children of threads too, and nobody else."""
    family = [sys.executable, "-c", FAMILY]
    with subprocess.Popen(family, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"up\n"
        found = procfs.usage_below(first.pid)
        assert found["processes"] == 2
        assert isinstance(found["cpu_seconds"], float)
        assert found["cpu_seconds"] >= 0
        wait_for(lambda: int(str(procfs.usage_below(first.pid)["memory_bytes"])) > 1 << 20)  # its children have begun
    assert procfs.usage_below(first.pid) == {"processes": 0, "cpu_seconds": 0.0, "memory_bytes": 0}


def test_a_process_is_named_with_its_parents() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        child = int(shell.stdout.readline())
        assert procfs.lineage(child, os.getpid()) == [child, shell.pid]
        assert procfs.lineage(os.getpid(), os.getpid()) == []
        os.kill(child, 9)
    with pytest.raises(OSError, match="No such"):
        procfs.lineage(child, os.getpid())


def test_all_children_are_found_where_their_list_is_longer_than_a_page() -> None:
    """The shell prints the number of each child that it starts, and waits for our end of the pipe to close."""
    count = 1200
    shell = subprocess.Popen(
        ["sh", "-c", f"for _ in $(seq {count}); do read -r _ <&3 & echo $!; done 3<&0; echo done; wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    try:
        started = {int(line) for line in iter(shell.stdout.readline, "done\n")}
        assert len(started) == count
        assert set(procfs.children(shell.pid)) == started
    finally:
        shell.stdin.close()
        shell.stdout.close()
        shell.wait()
