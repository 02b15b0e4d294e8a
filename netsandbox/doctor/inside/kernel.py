"""Attempts by system call: odd sockets, io_uring, user namespaces, tracing."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
from collections.abc import Callable

from netsandbox.doctor.inside.prevented import Prevented

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER = 0x10000000
PTRACE_SEIZE = 0x4206
# errors that a call gives when it is not there for us; any other means that the kernel looked at its arguments
ABSENT = (errno.ENOSYS, errno.EPERM, errno.EACCES)


def open_socket(family: int, kind: int, protocol: int = 0) -> str:
    with socket.socket(family, kind, protocol):
        return "the socket was made"


def io_uring(number: int) -> str:
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params, io_uring_setup(2)
    return _reached(LIBC.syscall(number, 1, parameters))


def user_namespace(unshare: int, clone: int, clone3: int) -> str:
    """Each of the three ways, each in a process of its own."""
    ways: dict[str, Callable[[], str]] = {
        "unshare": lambda: _reached(LIBC.syscall(unshare, CLONE_NEWUSER)),
        "clone": lambda: _child(LIBC.syscall(clone, CLONE_NEWUSER | signal.SIGCHLD, None, None, None, None)),
        "clone3": lambda: _child(LIBC.syscall(clone3, _clone_arguments(), 88)),
    }
    worked = [name for name, way in ways.items() if _in_process(way)]
    if not worked:
        raise Prevented("unshare, clone and clone3 refused")
    return f"a user namespace by {', '.join(worked)}"


def trace_parent() -> str:
    """Inside a session the parent is its first process, which holds the channel to the supervisor."""
    parent = os.getppid()
    if LIBC.ptrace(PTRACE_SEIZE, parent, None, None) == 0:
        return "the session's first process can be traced"
    with open(f"/proc/{parent}/mem", "rb"):
        return "the memory of the session's first process can be read"


def signal_group() -> str:
    """kill(2) with 0 means the process group, which may reach out of the session. SIGURG harms nobody."""
    os.kill(0, signal.SIGURG)
    return "sent"


def _reached(result: int) -> str:
    if result >= 0:
        return "the call worked"
    number = ctypes.get_errno()
    if number in ABSENT:
        raise OSError(number, os.strerror(number))
    return f"the call reached the kernel: {errno.errorcode.get(number, number)}"


def _child(result: int) -> str:
    """After a raw clone: the child leaves at once, the parent reaps it."""
    if result == 0:
        os._exit(0)
    if result > 0:
        os.waitpid(result, 0)
    return _reached(result)


def _clone_arguments() -> ctypes.Array[ctypes.c_uint64]:
    """struct clone_args, clone(2): flags first, exit_signal fifth."""
    return (ctypes.c_uint64 * 11)(CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD)


def _in_process(way: Callable[[], str]) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            way()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
