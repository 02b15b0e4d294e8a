"""A control socket is reached however deep its folder lies, and only one of our own user is believed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from netsandbox.runtime.control_socket import (
    CONTROL_NAME,
    MAX_ADDRESS,
    MAX_DESCRIPTORS,
    address,
    connect,
    is_trusted,
    listen_private,
    open_folder,
    peer_pid,
    peer_uid,
    receive_descriptors,
    send_descriptors,
)

STRANGER = 65534
KERNELS_LIMIT = 107  # bytes of a path in a socket address, without the zero at its end


def listen(folder: Path, backlog: int = 8) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    descriptor = open_folder(str(folder))
    listener.bind(f"/proc/self/fd/{descriptor}/{CONTROL_NAME}")
    os.close(descriptor)
    listener.listen(backlog)
    return listener


@pytest.fixture(params=["near", "deep"])
def folder(request: pytest.FixtureRequest, short_tmp: Path) -> Path:
    """Within what an address can hold, and far beyond it."""
    path = short_tmp if request.param == "near" else short_tmp / ("d" * 200)
    path.mkdir(exist_ok=True)
    return path


def test_it_is_reached_and_the_kernel_says_by_whom(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with listen(folder) as listener:
        sock = connect(str(folder))
        listener.accept()[0].close()
        assert not sock.getblocking()
        assert (peer_pid(sock), peer_uid(sock)) == (os.getpid(), os.geteuid())
        assert is_trusted(sock)
        sock.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("size", range(MAX_ADDRESS - 2, KERNELS_LIMIT + 3))
def test_every_length_of_a_path_becomes_an_address_that_fits(size: int) -> None:
    path = "/" + "é" * 10 + "x" * (size - 22 - len(CONTROL_NAME)) + "/" + CONTROL_NAME
    assert len(os.fsencode(path)) == size
    spelled = address(7, path)
    assert spelled == (path if size <= MAX_ADDRESS else f"/proc/self/fd/7/{CONTROL_NAME}")
    assert len(os.fsencode(spelled)) <= KERNELS_LIMIT


def test_each_way_of_not_being_there_has_its_error_and_costs_no_descriptor(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        connect(str(folder / "nowhere"))
    with pytest.raises(FileNotFoundError):
        connect(str(folder))
    listen(folder).close()
    with pytest.raises(ConnectionRefusedError):
        connect(str(folder))
    assert len(os.listdir("/proc/self/fd")) == before


def test_too_many_at_once_is_said_and_not_waited_for(folder: Path) -> None:
    with listen(folder, backlog=0):
        first = connect(str(folder))
        with pytest.raises(BlockingIOError):
            connect(str(folder))
        first.close()


@pytest.mark.attack(171)
def test_a_link_in_the_folders_place_is_not_followed(folder: Path, short_tmp: Path) -> None:
    link = short_tmp / "link"
    link.symlink_to(folder)
    with listen(folder), pytest.raises(NotADirectoryError):
        connect(str(link))


@pytest.mark.attack(182)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of somebody else")
def test_nobody_listens_in_the_folder_of_another_user(short_tmp: Path) -> None:
    """Who owns the folder can put another socket in the place of ours."""
    folder = short_tmp / "theirs"
    folder.mkdir(0o700)
    listen_private(str(folder), CONTROL_NAME, 1).close()
    (folder / CONTROL_NAME).unlink()
    os.chown(folder, STRANGER, STRANGER)
    with pytest.raises(PermissionError, match="another user"):
        listen_private(str(folder), CONTROL_NAME, 1)
    assert list(folder.iterdir()) == []


@pytest.mark.attack(182)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can listen as somebody else")
def test_who_listens_as_another_user_is_not_believed(short_tmp: Path) -> None:
    code = (
        "import os, socket, sys\n"
        f"os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})\n"
        "sock = socket.socket(socket.AF_UNIX)\n"
        "sock.bind(sys.argv[1])\n"
        "sock.listen()\n"
        "print('up', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(short_tmp / CONTROL_NAME)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        sock = connect(str(short_tmp))
        assert (peer_pid(sock), peer_uid(sock)) == (process.pid, STRANGER)
        assert not is_trusted(sock)
        sock.close()
        process.communicate(b"")


def test_descriptors_arrive_with_the_bytes_and_are_closed_at_exec() -> None:
    near, far = socket.socketpair()
    with near, far, open(os.devnull) as file:
        assert send_descriptors(near, b"line\n", [file.fileno()] * MAX_DESCRIPTORS) == 5
        data, found = receive_descriptors(far, 100)
        assert (data, len(found)) == (b"line\n", MAX_DESCRIPTORS)
        for fd in found:
            assert not os.get_inheritable(fd)
            os.close(fd)
        near.send(b"more")
        assert receive_descriptors(far, 100) == (b"more", [])
