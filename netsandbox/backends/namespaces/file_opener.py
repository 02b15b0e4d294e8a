"""Opens approved files by the native process of native/opener.h, which answers requests in their order.

The session's user namespace is found by the process whose call waits. That process may have made namespaces of its own:
the right one is the one whose parent is ours.
"""

from __future__ import annotations

import _socket
import _struct
import errno
import fcntl
import os
import sys

from netsandbox.backends.linux.helper_process import CHANNEL, SIGKILL, SIGPIPE, SIGXFSZ
from netsandbox.backends.namespaces.launch import HELPER
from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop

    Done = Callable[[int, int], None]  # receives an errno or 0, and a descriptor that is closed afterwards, or -1

NS_GET_USERNS, NS_GET_PARENT = 0xB701, 0xB702  # ioctl_nsfs(2)
MAX_NESTED = 32  # the kernel's limit for user namespaces
REQUEST = _struct.Struct("=BBHII")
OPEN, MAKE, SHOW = b"onx"


class FileOpener:
    """One per session, made for the first file. *pid* is a process of the session whose call waits."""

    def __init__(self, loop: Loop, pid: int) -> None:
        self._loop = loop
        self._waiting: list[Done] = []
        users, mounts = session_namespaces(pid)
        self._sock, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0)
        sources: list[int] = []
        try:
            for fd in (theirs.fileno(), users, mounts):
                sources.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, CHANNEL + 3))
            actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_CLOSE, fd) for fd in range(CHANNEL)]
            actions += [(os.POSIX_SPAWN_DUP2, fd, CHANNEL + number) for number, fd in enumerate(sources)]
            self._pid = os.posix_spawn(
                HELPER, [HELPER], {}, file_actions=actions, setsigmask=[], setsigdef=[SIGPIPE, SIGXFSZ]
            )
        finally:
            theirs.close()
            for fd in (users, mounts, *sources):
                os.close(fd)
        loop.watch(self._sock.fileno(), IN, self._on_reply)

    def request(self, does: int, path: str, done: Done, *, writes: bool = False, flags: int = 0, mode: int = 0) -> None:
        """Open, make or show *path*. *done* is called once, also if that fails."""
        self._waiting.append(done)
        try:
            self._sock.send(
                REQUEST.pack(does, writes, 0, flags, mode) + os.fsencode(path) + b"\0", _socket.MSG_DONTWAIT
            )
        except OSError as error:
            self._waiting.remove(done)
            done(error.errno or errno.EIO, -1)

    def _on_reply(self, events: int) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(4, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
        except OSError:
            data, ancillary = b"", []
        fds = [int.from_bytes(payload[:4], sys.byteorder) for _, _, payload in ancillary]
        try:
            if len(data) != 4 or not self._waiting:
                self._lose()
                return
            number = int.from_bytes(data, sys.byteorder)
            self._waiting.pop(0)(number, fds[0] if fds else -1)
        finally:
            for fd in fds:
                os.close(fd)

    def _lose(self) -> None:
        """The process is gone: whatever waits has failed."""
        self._loop.unwatch(self._sock.fileno())
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done(errno.EIO, -1)

    def close(self) -> None:
        self._lose()
        self._sock.close()
        os.kill(self._pid, SIGKILL)  # our own child, not reaped yet
        os.waitpid(self._pid, 0)


def session_namespaces(pid: int) -> tuple[int, int]:
    """Descriptors of the session's user namespace and of its mounts. OSError: the process is gone, or has other
    mounts."""
    users = _open_namespace(pid, "user")
    try:
        own = os.stat("/proc/self/ns/user")
        for _ in range(MAX_NESTED):
            parent = fcntl.ioctl(users, NS_GET_PARENT)
            if os.path.samestat(os.fstat(parent), own):
                os.close(parent)
                break
            os.close(users)
            users = parent
        mounts = _open_namespace(pid, "mnt")
        try:
            owner = fcntl.ioctl(mounts, NS_GET_USERNS)
            is_its = os.path.sameopenfile(owner, users)
            os.close(owner)
            if not is_its:
                raise OSError(errno.EPERM, "the process has mounts of its own")
        except BaseException:
            os.close(mounts)
            raise
    except BaseException:
        os.close(users)
        raise
    return users, mounts


def _open_namespace(pid: int, kind: str) -> int:
    return os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
