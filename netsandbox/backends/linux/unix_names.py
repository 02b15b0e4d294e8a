"""Finds the name under which a server was bound to a socket file. The kernel keeps it through renames and links.

The list of listeners (sock_diag(7)) has those of this network, by device and inode. It lacks servers in containers, and
for some file systems (btrfs) its device differs from that of stat(2). For such a server we open a connection that sends
nothing and closes at once: getpeername(2) returns the name too.
"""

from __future__ import annotations

import _socket
import _struct
import os

from netsandbox.backends.linux.socket_diag import LISTENING, SOCK_DIAG, dump
from netsandbox.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SHOW_NAME, SHOW_VFS = 1, 2  # linux/unix_diag.h
NAME, VFS = 0, 1
QUESTION = _struct.Struct("=BBHIIIII")
FACTS = 16  # struct unix_diag_msg
KINDS = (_socket.SOCK_STREAM, _socket.SOCK_SEQPACKET)  # the kinds that a session can connect


@frozen
class Server:
    """The names that lead to one socket file. `foreign`: in another network, where files may differ."""

    names: frozenset[str]
    foreign: bool = False


def server_at(fd: int) -> Server | None:
    """The server that listens at the socket file open as *fd* (O_PATH); None if none can be reached."""
    info = os.fstat(fd)
    try:
        listeners = _listeners()
    except OSError:  # a kernel without the list
        listeners = None
    names = _at(info.st_dev, info.st_ino, listeners or ())
    if names:
        return Server(frozenset(names))
    peer = _peer_name(fd)
    if peer is None:
        return None
    foreign = listeners is not None and peer not in {name for name, _ in listeners}
    return Server(frozenset((peer,)), foreign=foreign)


def bound_names(device: int, inode: int) -> set[str]:
    """The names under which listeners of this host's network are bound to the socket file with this identity."""
    return _at(device, inode, _listeners())


def _at(device: int, inode: int, listeners: Iterable[tuple[str, bytes]]) -> set[str]:
    wanted = _struct.pack("=II", inode & 0xFFFFFFFF, os.major(device) << 20 | os.minor(device))
    return {name for name, place in listeners if place == wanted}


def _peer_name(fd: int) -> str | None:
    for kind in KINDS:
        client = _socket.socket(_socket.AF_UNIX, kind)
        try:
            client.settimeout(0)
            client.connect(f"/proc/self/fd/{fd}")
            name = client.getpeername()
        except OSError:  # no listener, another type, no permission, or a full queue
            continue
        finally:
            client.close()
        return name if isinstance(name, str) and name else None
    return None


def _listeners() -> list[tuple[str, bytes]]:
    """Name, and device with inode, of each listener that is bound to a file."""
    body = QUESTION.pack(_socket.AF_UNIX, 0, 0, LISTENING, 0, SHOW_NAME | SHOW_VFS, 0xFFFFFFFF, 0xFFFFFFFF)
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, SOCK_DIAG)
    try:
        answers = [_attributes(answer[FACTS:]) for answer in dump(sock, body)]
    finally:
        sock.close()
    return [(os.fsdecode(found[NAME].split(b"\0")[0]), found[VFS]) for found in answers if {NAME, VFS} <= found.keys()]


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = _struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
