"""Control sockets: their names, how a session listens, how a client connects, and who the peer is.

    <state home>/netsandbox/sessions/<id>/control

A socket address holds 108 bytes (104 on a Mac) and a state folder may lie deeper: then it names the folder by its
descriptor, which only Linux can.
"""

from __future__ import annotations

import _socket
import errno
import os
import sys

CONTROL_NAME = "control"
EARLY = ".new"  # behind a name until the socket listens
EARLY_NAME = f"{CONTROL_NAME}{EARLY}"
MAX_ADDRESS = 100
PATH_ONLY = getattr(os, "O_PATH", 0)  # a Mac has descriptors of folders by reading them alone
SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID = 0, 1, 2  # a Mac's sys/un.h
CREDENTIALS = 76  # struct xucred: version, uid, groups
MAX_DESCRIPTORS = 4  # of one message
_CLOSED_AT_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)  # a Mac does without


def open_folder(path: str) -> int:
    return os.open(path, PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def make_private(folder: int) -> None:
    """0700 for an open folder."""
    if PATH_ONLY:
        os.chmod(f"/proc/self/fd/{folder}", 0o700)
    else:
        os.fchmod(folder, 0o700)


def address(folder: int, path: str) -> str:
    """*path*, a name in the open *folder*, as a socket address."""
    if len(os.fsencode(path)) <= MAX_ADDRESS:
        return path
    if not PATH_ONLY:
        raise OSError(errno.ENAMETOOLONG, "its path is too long for a socket of this system")
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"


def connect(directory: str, name: str = CONTROL_NAME) -> _socket.socket:
    """A non-blocking connection. ConnectionRefusedError: nobody listens; BlockingIOError: too many clients at once."""
    folder = open_folder(directory)
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003 (the standard library's own signature)
        sock.connect(address(folder, os.path.join(directory, name)))
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(folder)
    return sock


def listen_private(folder: str, name: str, backlog: int) -> _socket.socket:
    """A socket that listens as *name* in *folder*, which is made if need be, and that only this user can reach."""
    os.makedirs(folder, 0o700, exist_ok=True)
    descriptor = open_folder(folder)
    try:
        _check_folder(descriptor)
        return _bind(descriptor, os.path.join(folder, name), backlog)
    finally:
        os.close(descriptor)


def _check_folder(descriptor: int) -> None:
    info = os.fstat(descriptor)
    if info.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "its folder belongs to another user")
    if info.st_mode & 0o777 != 0o700:  # independent of the umask
        make_private(descriptor)


def _bind(descriptor: int, path: str, backlog: int) -> _socket.socket:
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003 (the standard library's own signature)
        if PATH_ONLY:  # Linux gives the name the socket's mode, less the umask; sockets of macOS have no mode
            os.fchmod(sock.fileno(), 0o600)
        name = os.path.basename(path)
        early = f"{name}{EARLY}"
        sock.bind(address(descriptor, f"{path}{EARLY}"))
        os.chmod(early, 0o600, dir_fd=descriptor)
        sock.listen(backlog)
        os.rename(early, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    except BaseException:
        sock.close()
        raise
    return sock


def receive_descriptors(sock: _socket.socket, size: int) -> tuple[bytes, list[int]]:
    """At most *size* bytes, and the descriptors that came with them, which are the caller's to close."""
    data, ancillary, _, _ = sock.recvmsg(size, _socket.CMSG_SPACE(4 * MAX_DESCRIPTORS), _CLOSED_AT_EXEC)
    found = [
        int.from_bytes(payload[start : start + 4], sys.byteorder)
        for level, kind, payload in ancillary
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)
        for start in range(0, len(payload) - 3, 4)
    ]
    for descriptor in found if not _CLOSED_AT_EXEC else ():
        os.set_inheritable(descriptor, False)  # noqa: FBT003 (the standard library's own signature)
    return data, found


def send_descriptors(sock: _socket.socket, data: bytes, descriptors: list[int]) -> int:
    """How many bytes of *data* were sent; the descriptors go with the first of them."""
    packed = b"".join(descriptor.to_bytes(4, sys.byteorder) for descriptor in descriptors)
    return sock.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)] if packed else [])


def peer_pid(sock: _socket.socket) -> int:
    """The process that connected, or began to listen, at the other end; 0 for one in another PID namespace."""
    if hasattr(_socket, "SO_PEERCRED"):
        return _credential(sock, 0)
    return int.from_bytes(sock.getsockopt(SOL_LOCAL, LOCAL_PEERPID, 4), sys.byteorder)


def peer_uid(sock: _socket.socket) -> int:
    """The user of that process."""
    if hasattr(_socket, "SO_PEERCRED"):
        return _credential(sock, 4)
    return int.from_bytes(sock.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, CREDENTIALS)[4:8], sys.byteorder)


def _credential(sock: _socket.socket, at: int) -> int:
    """unix(7), SO_PEERCRED: pid, uid, gid."""
    credentials = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[at : at + 4], sys.byteorder)


def is_trusted(sock: _socket.socket) -> bool:
    """Whether the peer is our own user, or root, who needs no socket to control a session (attacks 171, 182)."""
    return peer_uid(sock) in (os.geteuid(), 0)
