"""Which socket file a path of `--allow-unix-socket` means.

A path is only a name, and a workload that may write the folder can put another socket there: by renaming it, by a hard
link, by a symbolic link, by renaming the folder (attacks 146, 147 and 149). So a name is pinned: the inode that was
there first is the one meant. When its server makes the file anew, the new inode is taken only if the kernel says that
its listener was bound under that very name, which no later rename can change. Who cannot be recognised is refused.
"""

from __future__ import annotations

import _socket
import _struct
import os

from netsandbox.linux.socket_diag import LISTENING, SOCK_DIAG, dump

SHOW_NAME, SHOW_VFS = 1, 2  # linux/unix_diag.h
NAME, VFS = 0, 1
QUESTION = _struct.Struct("=BBHIIIII")
FACTS = 16  # struct unix_diag_msg


class Pin:
    """One allowed path. Make it before the workload runs; the descriptor keeps the inode's number from being reused."""

    __slots__ = ("_fd", "_identity", "_names", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._names = {os.fsencode(path), os.path.realpath(os.fsencode(path))}
        try:
            self._fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # its server has not started yet
            self._fd = -1
        self._identity = _identity(os.fstat(self._fd)) if self._fd >= 0 else None

    def admits(self, info: os.stat_result) -> bool:
        """Whether *info* is that of the socket that the user meant."""
        identity = _identity(info)
        if identity == self._identity:
            return True
        return _identity(os.stat(self.path)) == identity and bool(self._names & bound_names(*identity))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _identity(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def bound_names(device: int, inode: int) -> set[bytes]:
    """Under which names the listeners of this host's network are bound to the socket file with this identity."""
    wanted = _struct.pack("=II", inode & 0xFFFFFFFF, os.major(device) << 20 | os.minor(device))
    found: set[bytes] = set()
    for attributes in _listeners():
        name = attributes.get(NAME)
        if name and attributes.get(VFS) == wanted:
            found.add(name.split(b"\0")[0])
    return found


def _listeners() -> list[dict[int, bytes]]:
    body = QUESTION.pack(_socket.AF_UNIX, 0, 0, LISTENING, 0, SHOW_NAME | SHOW_VFS, 0xFFFFFFFF, 0xFFFFFFFF)
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, SOCK_DIAG)
    try:
        return [_attributes(answer[FACTS:]) for answer in dump(sock, body)]
    finally:
        sock.close()


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = _struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
