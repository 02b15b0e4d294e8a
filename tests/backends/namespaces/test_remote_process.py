"""What can be taken from another process, and what cannot, on real processes."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from netsandbox.backends.linux.procfs import process_of
from netsandbox.backends.namespaces import remote_process


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_the_copy_is_the_same_socket(sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets
    copy = remote_process.copy_socket(os.getpid(), theirs.fileno())
    assert copy.fileno() != theirs.fileno()
    copy.send(b"x")
    assert ours.recv(1) == b"x"
    assert copy.family == socket.AF_UNIX
    copy.close()


def test_a_thread_is_as_good_as_its_process(sockets: tuple[socket.socket, socket.socket]) -> None:
    done, threads = threading.Event(), []

    def wait() -> None:
        threads.append(threading.get_native_id())
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    while not threads:
        pass
    try:
        remote_process.copy_socket(threads[0], sockets[0].fileno()).close()
        assert process_of(threads[0]) == os.getpid()
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(("number", "expected"), [(1 << 20, errno.EBADF), (0xFFFFFFFF, errno.EBADF)])
def test_a_closed_descriptor_is_said_to_be_closed(number: int, expected: int) -> None:
    with pytest.raises(OSError, match=os.strerror(expected)):
        remote_process.copy_socket(os.getpid(), number)


def test_a_file_is_no_socket_and_its_copy_is_closed() -> None:
    with open(os.devnull) as file:
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match="Socket operation on non-socket"):
            remote_process.copy_socket(os.getpid(), file.fileno())
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_dead_process_has_nothing() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    for take in (lambda: remote_process.copy_socket(pid, 0), lambda: remote_process.memory(pid, 4096, 1)):
        with pytest.raises(OSError, match="No such"):
            take()


def test_memory_is_read_whole_or_not_at_all() -> None:
    buffer = ctypes.create_string_buffer(b"sockaddr", 16)
    assert remote_process.memory(os.getpid(), ctypes.addressof(buffer), 8) == b"sockaddr"
    assert remote_process.memory(os.getpid(), 0, 0) == b""
    for address in (0, 8, (1 << 64) - 8, 0xFFFFFFFF81000000):
        with pytest.raises(OSError, match="Bad address"):
            remote_process.memory(os.getpid(), address, 16)


@pytest.mark.attack(132)
def test_a_socket_is_told_from_one_of_another_network(user_namespaces: None) -> None:
    """The caller's network counts, not ours: a socket of ours is foreign to a process that has its own."""
    ends, hold = os.pipe(), os.pipe()
    command = ["unshare", "--user", "--map-root-user", "--net", "--", "sh", "-c", "echo; read x"]
    actions = [(os.POSIX_SPAWN_DUP2, ends[1], 1), (os.POSIX_SPAWN_DUP2, hold[0], 0)]
    child = os.posix_spawnp("unshare", command, dict(os.environ), file_actions=actions)
    try:
        os.read(ends[0], 1)
        with socket.socket() as ours:
            assert remote_process.in_network_of(os.getpid(), ours)
            assert not remote_process.in_network_of(child, ours)
    except PermissionError:  # without privileges a foreign network may not even be looked at: a no as well
        assert os.geteuid() != 0
    finally:
        for fd in (*ends, *hold):
            os.close(fd)
        os.waitpid(child, 0)


def test_calls_are_made_with_the_very_bytes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        port = server.getsockname()[1].to_bytes(2, "big")
        address = (2).to_bytes(2, "little") + port + bytes([127, 0, 0, 1]) + bytes(8)
        assert remote_process.bind(client.fileno(), address) == errno.EADDRINUSE
        assert remote_process.bind(client.fileno(), address[:7]) == errno.EINVAL
        assert remote_process.bind(-1, address) == errno.EBADF
