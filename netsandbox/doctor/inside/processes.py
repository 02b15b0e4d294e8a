"""Attempts on a process outside that is the user's own: signalling it, tracing it, reading what it was started with."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys

from netsandbox.doctor.inside import kernel
from netsandbox.doctor.inside.prevented import Prevented

ATTACH, DETACH = (14, 11) if sys.platform == "darwin" else (kernel.PTRACE_SEIZE, 17)  # ptrace(2)
CTL_KERN, KERN_PROCARGS2 = 1, 49  # sysctl(3) of Darwin
HIGHEST_DESCRIPTOR = 1024


def end(pid: int) -> str:
    os.kill(pid, signal.SIGTERM)
    return "signalled"


def trace(pid: int) -> str:
    if kernel.LIBC.ptrace(ATTACH, pid, None, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    kernel.LIBC.ptrace(DETACH, pid, None, None)
    return "it can be traced"


def read_environment(pid: int) -> str:
    """Arguments and variables: where programs have their tokens and passwords."""
    if sys.platform != "darwin":
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"read {len(file.read())} bytes"
    name = (ctypes.c_int * 3)(CTL_KERN, KERN_PROCARGS2, pid)
    room = ctypes.c_size_t(1 << 18)
    buffer = ctypes.create_string_buffer(room.value)
    if kernel.LIBC.sysctl(name, 3, buffer, ctypes.byref(room), None, ctypes.c_size_t(0)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return f"read {room.value} bytes"


def inherited() -> str:
    """Descriptors beside the three; asked of each number, since no folder lists them on every system."""
    found = [number for number in range(3, HIGHEST_DESCRIPTOR) if _is_open(number)]
    if not found:
        raise Prevented("only 0, 1 and 2")
    return f"{len(found)} more, the first is {found[0]}"


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError as error:
        return error.errno != errno.EBADF
    return True
