"""Whose a connection on this machine's loopback is: the kernel knows the user of the socket at its other end.

sock_diag(7) is asked for that one socket, which costs the same however many there are. Where it cannot be asked, the
user is unknown, and the caller takes that for somebody else's.
"""

from __future__ import annotations

import _socket
from _struct import Struct

AF_NETLINK, SOCK_DIAG = 16, 4  # (linux/netlink.h)
SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST = 20, 1
ANY_STATE = 0xFFFFFFFF
HEADER = Struct("=IHHII")
QUESTION = Struct("=BBBxI")  # inet_diag_req_v2 up to the socket's id: family, protocol, extensions, states
IDENTITY = Struct("!HH16s16s12s")  # ports, addresses; interface and cookie, of which INET_DIAG_NOCOOKIE means any
NO_COOKIE = bytes(4) + b"\xff" * 8
UID = HEADER.size + 4 + IDENTITY.size + 12  # in inet_diag_msg
MAX_ANSWER = 4096


def peer_user(sock: _socket.socket) -> int | None:
    """The user id of the socket at the other end of *sock*, a TCP connection within this machine; None: unknown."""
    try:
        near, far = sock.getsockname(), sock.getpeername()
        addresses = [_socket.inet_pton(sock.family, each[0]).ljust(16, b"\0") for each in (far, near)]
        identity = IDENTITY.pack(far[1], near[1], *addresses, NO_COOKIE)
        body = QUESTION.pack(sock.family, _socket.IPPROTO_TCP, 0, ANY_STATE) + identity
        question = HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + body
        kernel = _socket.socket(AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC, SOCK_DIAG)
        try:
            kernel.send(question)
            answer = kernel.recv(MAX_ANSWER)
        finally:
            kernel.close()
    except (OSError, AttributeError):  # it has left, or this system has no such question
        return None
    if len(answer) < UID + 4 or HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None
    return int.from_bytes(answer[UID : UID + 4], "little")
