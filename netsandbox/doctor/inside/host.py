"""Attempts on the host: files of the supervisor, processes of the user, system calls, and the state of this process."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping

from netsandbox.doctor.inside import Prevented
from netsandbox.system import IS_MACOS

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER = 0x10000000
PTRACE_SEIZE = 0x4206
# errors of a call that is refused or missing; with any other error the kernel has examined the arguments
ABSENT = (errno.ENOSYS, errno.EPERM, errno.EACCES)


def open_socket(family: int, kind: int, protocol: int = 0) -> str:
    with socket.socket(family, kind, protocol):
        return "the socket was made"


def io_uring(number: int) -> str:
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params, io_uring_setup(2)
    return _reached(LIBC.syscall(number, 1, parameters))


def user_namespace(unshare: int, clone: int, clone3: int) -> str:
    """Try unshare, clone and clone3, each in a child process."""
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


MNT_DETACH = 2


def append(path: str, text: str) -> str:
    with open(path, "a") as file:
        file.write(text)
    return "written"


def read(path: str) -> str:
    with open(path, "rb") as file:
        return f"read {len(file.read(4096))} bytes"


def device(path: str) -> str:
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    return "opened"


def many_files(count: int) -> str:
    """Have *count* files open at the same time."""
    held: list[int] = []
    try:
        while len(held) < count:
            held.append(os.dup(0))
    finally:
        for descriptor in held:
            os.close(descriptor)
    return f"{count} opened"


def read_replaced(path: str, ready: str, done: str) -> str:
    """Read a file that the host replaces meanwhile: it does once *ready* exists, and then makes *done*."""
    os.close(os.open(ready, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for _ in range(500):
        if os.path.exists(done):
            break
        time.sleep(0.01)
    return read(path)


def read_log(state: str) -> str:
    """The log of this session."""
    return read(_log_path(state))


def listing(path: str) -> str:
    return f"{len(os.listdir(path))} names seen"


def append_log(state: str, text: str) -> str:
    """The log of this session, after an attempt to unmount what covers its folder."""
    if hasattr(LIBC, "umount2"):
        LIBC.umount2(os.fsencode(state), MNT_DETACH)
    return append(_log_path(state), text)


def _log_path(state: str) -> str:
    session = os.environ.get("NETSANDBOX_SESSION", "none")
    return os.path.join(state, "sessions", session, "audit.jsonl")


def move(path: str) -> str:
    """A folder that can be moved away leaves its path free for a forged one."""
    os.rename(path, f"{path}.moved")
    os.rename(f"{path}.moved", path)
    return "the folder was moved"


def open_for_writing(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
    return "opened for writing"


ATTACH, DETACH = (14, 11) if IS_MACOS else (PTRACE_SEIZE, 17)  # ptrace(2)
CTL_KERN, KERN_PROCARGS2 = 1, 49  # sysctl(3) of Darwin
MAX_DESCRIPTOR = 1024


def end_process(pid: int) -> str:
    os.kill(pid, signal.SIGTERM)
    return "signalled"


def trace_process(pid: int) -> str:
    if LIBC.ptrace(ATTACH, pid, None, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    LIBC.ptrace(DETACH, pid, None, None)
    return "it can be traced"


def read_environment(pid: int) -> str:
    """Arguments and variables, which may contain tokens and passwords."""
    if not IS_MACOS:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"read {len(file.read())} bytes"
    name = (ctypes.c_int * 3)(CTL_KERN, KERN_PROCARGS2, pid)
    room = ctypes.c_size_t(1 << 18)
    buffer = ctypes.create_string_buffer(room.value)
    if LIBC.sysctl(name, 3, buffer, ctypes.byref(room), None, ctypes.c_size_t(0)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return f"read {room.value} bytes"


def inherited_descriptors() -> str:
    """Descriptors besides the standard ones. Each number is tried, because not every session has the folder that lists
    them."""
    numbers = {*range(3, MAX_DESCRIPTOR)}
    try:
        numbers |= {int(name) for name in os.listdir("/dev/fd")} - {0, 1, 2}
    except OSError:
        pass
    found = [number for number in sorted(numbers) if _is_open(number)]
    if not found:
        raise Prevented("only 0, 1 and 2")
    return f"{len(found)} more, the first is {found[0]}"


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError as error:
        return error.errno != errno.EBADF
    return True


SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def capabilities() -> str:
    held = [name for name in SETS if int(_status()[name], 16)]
    if not held:
        raise Prevented("every set is empty")
    return f"not empty: {', '.join(held)}"


def new_privileges() -> str:
    if _status()["NoNewPrivs"] == "1":
        raise Prevented("no_new_privs is set")
    return "a setuid program would give privileges"


def no_filter() -> str:
    if _status()["Seccomp"] == "2":
        raise Prevented("a filter is in force")
    return "no seccomp filter"


def shared_namespaces(host: Mapping[str, str]) -> str:
    """*host* has the host's namespaces by kind, such as net: net:[4026531840]."""
    shared = [kind for kind, name in host.items() if os.readlink(f"/proc/self/ns/{kind}") == name]
    if not shared:
        raise Prevented("none is the host's")
    return f"the host's own: {', '.join(shared)}"


def foreign_processes() -> str:
    """The session has its first process, the one that starts commands of `exec`, and us. All others are foreign."""
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    foreign = [pid for pid in seen if pid not in (1, os.getpid()) and not _starts_commands(pid)]
    if not foreign:
        raise Prevented("only the session's own")
    return f"{len(foreign)} others in /proc"


def _starts_commands(pid: int) -> bool:
    """A name can be chosen by any process, but no other command runs in the session of a doctor."""
    try:
        status = _status(str(pid))
    except OSError:
        return False
    return status["Name"] == "netsandbox-exec" and status["PPid"] == "1"


def _status(process: str = "self") -> dict[str, str]:
    with open(f"/proc/{process}/status") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
