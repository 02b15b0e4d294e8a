"""What the supervisor takes from a process with a trapped system call: a copy of a descriptor, and bytes.

If the caller died, its pid may belong to another process, and another thread may change the memory. So each thing is
taken once; then the owner checks that the call still waits (NOTIF_ID_VALID) and acts on what was taken, never on the
caller's own copy (seccomp_unotify(2), attacks 115, 116 and 118). Every function raises OSError on failure.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import fcntl
import os

from netsandbox.backends.linux.procfs import process_of

SYS_PIDFD_GETFD = 438  # the same on every architecture
PIDFD_THREAD = os.O_EXCL  # since Linux 6.9; before, a thread is reached through its process
SIOCGSKNS = 0x894C

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def copy_socket(pid: int, number: int) -> _socket.socket:
    """Our own descriptor of the caller's socket. Fails with ENOTSOCK or EBADF as the kernel would."""
    pidfd = _pidfd(pid)
    try:
        fd = _checked(_syscall(SYS_PIDFD_GETFD, ctypes.c_int(pidfd), ctypes.c_int(number), ctypes.c_uint(0)))
    finally:
        os.close(pidfd)
    try:
        return _socket.socket(fileno=fd)
    except BaseException:
        os.close(fd)
        raise


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid, PIDFD_THREAD)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return os.pidfd_open(process_of(pid))


def in_network_of(pid: int, sock: _socket.socket) -> bool:
    """Whether the socket was made in the caller's network. One that came from outside must not get a new target."""
    fd = fcntl.ioctl(sock, SIOCGSKNS)
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/ns/net"), os.fstat(fd))
    finally:
        os.close(fd)


def memory(pid: int, address: int, length: int) -> bytes:
    """*length* bytes of the caller's memory, all or EFAULT."""
    data = _memory_up_to(pid, address, length)
    if len(data) != length:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    return data


def _memory_up_to(pid: int, address: int, length: int) -> bytes:
    """Fewer bytes if the memory ends earlier, none if there is no memory."""
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length, address)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(fd)


def bind(fd: int, address: bytes) -> int:
    """bind(2) with exactly these bytes; returns 0 or the errno."""
    return 0 if _libc.bind(fd, address, len(address)) == 0 else ctypes.get_errno()


def listen(fd: int, backlog: int) -> int:
    """listen(2); returns 0 or the errno."""
    return 0 if _libc.listen(fd, ctypes.c_int(backlog)) == 0 else ctypes.get_errno()
