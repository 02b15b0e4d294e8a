"""What /proc tells about a process, read from this one: whatever it calls itself, and when it is gone."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import threading

import pytest

from netsandbox.backends.namespaces import procfs

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
