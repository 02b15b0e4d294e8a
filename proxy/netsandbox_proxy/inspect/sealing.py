"""Confines the worker for good: no new privileges, no core file, no tracing, and a seccomp filter.

The filter is made by the supervisor (`netsandbox.backends.linux.engine_filter`): an allow list without any call that
opens, connects or executes. A network namespace would not do, since a connected socket that was handed over can be
connected again from inside one.
"""

from __future__ import annotations

import ctypes
import os
import resource

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 4, 38, 22
SECCOMP_MODE_FILTER = 2
SIGKILL = 9
MAX_MEMORY = 1 << 30
OOM_FIRST = 900  # of 1000 (proc_pid_oom_score_adj(5))
INSTRUCTION = 8  # bytes of struct sock_filter


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def die_with_parent() -> None:
    """Let the kernel kill this process when the one that started it ends."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)


def hide() -> None:
    """Keys are in the memory of this process: nobody traces it, and it leaves no core file, nor do its children."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hide_memory()


def hide_memory() -> None:
    """Nobody reads the memory or the first environment of this process, and it leaves no core file."""
    _prctl(PR_SET_DUMPABLE, 0)


def seal(program: bytes, descriptors: int) -> None:
    """Confine this process; there is no way back. *descriptors* is the most it may hold."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    most = min(descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    memory = ctypes.create_string_buffer(program, len(program))
    made = _Program(len(program) // INSTRUCTION, ctypes.cast(memory, ctypes.c_void_p).value)
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(made))


class OomOrder:
    """Lets the kernel kill a worker before the engine's first process when memory is short: a worker can be replaced.

    Opened before `hide`, since the file belongs to root afterwards. A child inherits the score that its parent has
    while it is made.
    """

    def __init__(self, path: str = "/proc/self/oom_score_adj") -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            self._own = os.read(self._descriptor, 16)
        except OSError:  # no such file, or not ours: the kernel chooses
            self._descriptor, self._own = -1, b""

    def fork(self) -> int:
        """os.fork, whose child comes first."""
        self._write(b"%d" % OOM_FIRST)
        child = os.fork()
        if child:
            self._write(self._own)
        elif self._descriptor >= 0:
            os.close(self._descriptor)
        return child

    def _write(self, score: bytes) -> None:
        if self._descriptor >= 0:
            try:
                os.pwrite(self._descriptor, score, 0)
            except OSError:  # a container may forbid it
                pass


def _prctl(option: int, first: int, second: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    if libc.prctl(option, first, second, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")
