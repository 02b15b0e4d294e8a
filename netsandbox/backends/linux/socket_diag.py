"""Queries the kernel about sockets by netlink (sock_diag(7)): one query, many replies.

/proc/net/tcp has the same data, but reading it walks the table of all connections of the host, which takes
milliseconds; a query for listeners only takes microseconds. The socket's network is the one that is queried.
"""

from __future__ import annotations

import _socket
import _struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20  # linux/sock_diag.h
REQUEST, DUMP, DONE, ERROR = 0x001, 0x300, 3, 2  # linux/netlink.h
HEADER = _struct.Struct("=IHHII")
TCP, UDP = 6, 17
LISTENING, BOUND, ANY = 1 << 10, 1 << 13, 0xFFFFFFFF  # sets of states; BOUND since Linux 6.8
INET_REQUEST = _struct.Struct("=BBxxI48x")  # struct inet_diag_req_v2: family, protocol, no extensions, states, any id
_OF_LOOPBACK = ("127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1")  # noqa: S104 (compared, not bound)
INET_FAMILY, INET_PORT, INET_SOURCE, INET_INODE, INET_LENGTH = 0, 4, 8, 68, 72  # struct inet_diag_msg


def dump(sock: _socket.socket, request: bytes) -> Iterator[bytes]:
    """The body of each reply. OSError if the kernel refuses the query."""
    sock.send(HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, REQUEST | DUMP, 1, 0) + request)
    while True:
        data = sock.recv(1 << 16)
        while len(data) >= HEADER.size:
            length, kind, *_ = HEADER.unpack_from(data)
            if kind == ERROR:
                raise OSError("the kernel refuses to list sockets")
            if kind == DONE or length < HEADER.size:
                return
            yield data[HEADER.size : length]
            data = data[(length + 3) & ~3 :]


def internet_sockets(sock: _socket.socket, protocol: int, states: int) -> Iterator[tuple[str, int, str]]:
    """Own address, port and inode of each socket in *states*."""
    for family in (_socket.AF_INET, _socket.AF_INET6):
        for answer in dump(sock, INET_REQUEST.pack(family, protocol, states)):
            yield read_internet(answer)


def host_listeners() -> set[int]:
    """The ports at which a server of this process's own network listens on its loopback. OSError: it is unknown."""
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, SOCK_DIAG)
    try:
        return {port for address, port, _ in internet_sockets(sock, TCP, LISTENING) if address in _OF_LOOPBACK}
    finally:
        sock.close()


def read_internet(answer: bytes) -> tuple[str, int, str]:
    """Parse one struct inet_diag_msg (pure); ValueError if it is too short."""
    if len(answer) < INET_LENGTH:
        raise ValueError("an answer of the kernel is too short")
    family = answer[INET_FAMILY]
    port = int.from_bytes(answer[INET_PORT : INET_PORT + 2], "big")
    size = 4 if family == _socket.AF_INET else 16
    address = _socket.inet_ntop(family, answer[INET_SOURCE : INET_SOURCE + size])
    return address, port, str(int.from_bytes(answer[INET_INODE : INET_INODE + 4], "little"))
