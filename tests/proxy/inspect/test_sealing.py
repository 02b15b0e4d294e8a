"""The worker as if it were taken over: each call that would open, dial, execute or start something fails."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from netsandbox_proxy.inspect import sealing

from netsandbox.backends.linux.engine_filter import engine_filter

MSG_FASTOPEN = 0x20000000
LIBC = ctypes.CDLL(None, use_errno=True)


def redirected(sock: socket.socket, port: int) -> None:
    """The way out of a network namespace that holds a connected socket: unconnect it, and connect again."""
    unspecified = ctypes.create_string_buffer(16)
    if LIBC.connect(sock.fileno(), unspecified, 16) != 0:
        raise OSError(ctypes.get_errno(), "connect")
    sock.connect(("127.0.0.1", port))


def executable() -> None:
    memory = LIBC.mmap
    memory.restype = ctypes.c_void_p
    if memory(None, 4096, 7, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0) == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")


ATTACKS: dict[str, Callable[[socket.socket, int], object]] = {
    "socket": lambda sock, port: socket.socket(),
    "unix socket": lambda sock, port: socket.socket(socket.AF_UNIX),
    "socketpair": lambda sock, port: socket.socketpair(),
    "connect again": redirected,
    "bind": lambda sock, port: sock.bind(("127.0.0.1", 0)),
    "listen": lambda sock, port: sock.listen(),
    "send to an address": lambda sock, port: sock.sendto(b"x", ("127.0.0.1", port)),
    "fast open": lambda sock, port: sock.sendmsg([b"x"], [], MSG_FASTOPEN, ("127.0.0.1", port)),
    "open": lambda sock, port: os.open("/etc/passwd", os.O_RDONLY),
    "create": lambda sock, port: os.open("/tmp/taken-over", os.O_WRONLY | os.O_CREAT, 0o600),
    "list": lambda sock, port: os.listdir("/"),
    "exec": lambda sock, port: os.execv("/bin/true", ["true"]),
    "fork": lambda sock, port: os.fork(),
    "kill": lambda sock, port: os.kill(os.getppid(), 0),
    "trace": lambda sock, port: LIBC.ptrace(16, os.getppid(), 0, 0) == 0 or (_ for _ in ()).throw(OSError(1, "ptrace")),
    "option": lambda sock, port: sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\0" * 8),
    "memory file": lambda sock, port: os.memfd_create("x"),
    "executable memory": lambda sock, port: executable(),
    "link": lambda sock, port: os.symlink("/etc", "/tmp/taken-over-link"),
    "name space": lambda sock, port: LIBC.unshare(0x10000000) == 0 or (_ for _ in ()).throw(OSError(1, "unshare")),
}  # fmt: skip


def in_sealed_process(attack: Callable[[], object]) -> str:
    """The outcome of *attack* in a process that is sealed as a worker is."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            sealing.hide()
            sealing.seal(engine_filter(os.uname().machine), 64)
            try:
                attack()
                text = "done"
            except OSError as error:
                text = f"errno {error.errno}"
            except BaseException as error:
                text = repr(error)
            os.write(writer, text.encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with open(reader, "rb") as pipe:
        return pipe.read().decode()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_worker_that_is_taken_over_can_do_none_of_these(name: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    other = socket.create_server(("127.0.0.1", 0))
    with listener, other, socket.create_connection(listener.getsockname()) as held:
        port = other.getsockname()[1]
        assert in_sealed_process(lambda: ATTACKS[name](held, port)) == "errno 1"
        other.settimeout(0.05)
        with pytest.raises(TimeoutError):
            other.accept()


def test_it_can_still_do_its_work() -> None:
    near, far = socket.socketpair()

    def work() -> None:
        far.sendall(far.recv(10).upper())
        far.shutdown(socket.SHUT_WR)

    near.sendall(b"bytes")
    assert in_sealed_process(work) == "done"
    assert near.recv(10) == b"BYTES"
    near.close()
    far.close()


def test_its_memory_is_hidden() -> None:
    def look() -> None:
        raise OSError(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), "PR_GET_DUMPABLE")

    assert in_sealed_process(look) in ("errno 0", "errno -1")  # hidden, or the question itself is refused


def test_it_ends_with_its_parent() -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        child = os.fork()
        if not child:
            os.close(reader)
            sealing.die_with_parent()
            os.write(writer, b"x")
            while True:
                os.read(os.open("/dev/zero", os.O_RDONLY), 1)
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with open(reader, "rb") as pipe:
        assert pipe.read() == b""


def test_the_memory_of_a_process_with_secrets_is_hidden() -> None:
    """Its core limit stays, since the command inherits that."""
    pid = os.fork()
    if not pid:
        before = resource.getrlimit(resource.RLIMIT_CORE)
        sealing.hide_memory()
        dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)  # PR_GET_DUMPABLE
        os._exit(0 if dumpable == 0 and resource.getrlimit(resource.RLIMIT_CORE) == before else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_where_the_kernel_takes_no_order_processes_are_made_all_the_same(tmp_path: Path) -> None:
    for path in (str(tmp_path / "missing"), "/dev/full"):
        order = sealing.OomOrder(path)
        child = order.fork()
        if not child:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
