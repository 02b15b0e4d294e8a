"""Connections and datagrams of the session as the broker passes them (native/rendezvous.h, native/datagrams.h).

The command's sockets are joined with ours by the broker, so no door listens where another program could reach it. The
classes here stand for listening sockets: the doors accept from them as they do from those of the kernel. The broker
also tells where a connection was meant to go, and which process made it.
"""

from __future__ import annotations

import _socket
import _struct
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACE = _struct.Struct("=16sHxx")
ARRIVAL = _struct.Struct("=16sHxx16sHxxi4x")  # struct arrival
DATAGRAM = _struct.Struct("=16sHxx4xQiHxx")  # struct datagram
MAPPED = bytes(10) + b"\xff\xff"
MAX_KNOWN = 4096  # peers whose process is remembered
MAX_DATAGRAM = 65507
IP_ORIGDSTADDR, IPV6_ORIGDSTADDR = 20, 74  # linux/in.h, linux/in6.h


def address_text(packed: bytes) -> str:
    """The text of 16 bytes; an IPv4 address is mapped."""
    if packed.startswith(MAPPED):
        return _socket.inet_ntop(_socket.AF_INET, packed[12:])
    return _socket.inet_ntop(_socket.AF_INET6, packed)


class Peers:
    """What the broker told of each peer. One per session; the peer's address and port are unique in it."""

    def __init__(self) -> None:
        self._wanted: dict[tuple[str, int], tuple[str, int]] = {}
        self._pids: dict[tuple[str, str, int], int] = {}

    def connected(self, source: tuple[str, int], wanted: tuple[str, int], pid: int) -> None:
        self._wanted[source] = wanted
        self.seen("tcp", source, pid)

    def seen(self, protocol: str, source: tuple[str, int], pid: int) -> None:
        if len(self._pids) >= MAX_KNOWN:
            del self._pids[next(iter(self._pids))]
        self._pids[protocol, source[0], source[1]] = pid

    def destination(self, sock: _socket.socket) -> tuple[str, int]:
        """Where a connection was meant to go. OSError: the broker did not tell, so the connection is refused."""
        host, port = sock.getpeername()[:2]
        wanted = self._wanted.pop((host, port), None)
        if wanted is None:
            raise OSError("a connection that the broker did not announce")
        return wanted

    def attribution(self, source: tuple[str, int], protocol: str = "tcp") -> tuple[int, str] | None:
        """The pid and the program of a peer; None if it has ended."""
        pid = self._pids.get((protocol, source[0], source[1]))
        if pid is None:
            return None
        try:
            return pid, os.readlink(f"/proc/{pid}/exe")
        except OSError:
            return None


class ArrivalSocket(_socket.socket):
    """Stands for a listening socket at *port* of the session's localhost. It owns *descriptor*."""

    def __init__(self, descriptor: int, peers: Peers, port: int = 0) -> None:
        super().__init__(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, descriptor)
        self._peers = peers
        self._port = port

    @property
    def family(self) -> int:
        """That of the connections."""
        return _socket.AF_INET

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def setsockopt(self, *_: Any) -> None:
        """The options of its connections are the broker's."""

    def listen(self, *_: Any) -> None:
        """It does so all the time."""

    def _accept(self) -> tuple[int, tuple[str, int]]:
        data, ancillary, _, _ = self.recvmsg(ARRIVAL.size, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
        descriptors = [
            int.from_bytes(payload[:4], "little")
            for level, kind, payload in ancillary
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)
        ]
        if len(data) != ARRIVAL.size or len(descriptors) != 1:  # the broker is gone, or we have too many open files
            for descriptor in descriptors:
                os.close(descriptor)
            raise OSError("no connection was passed")
        source, source_port, wanted, wanted_port, pid = ARRIVAL.unpack(data)
        peer = address_text(source), source_port
        self._peers.connected(peer, (address_text(wanted), wanted_port), pid)
        return descriptors[0], peer


class DatagramSocket(_socket.socket):
    """Stands for a UDP socket. The source of a datagram is (address, port, header of a reply)."""

    def __init__(self, descriptor: int, peers: Peers) -> None:
        super().__init__(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, descriptor)
        self._peers = peers

    @property
    def family(self) -> int:
        return _socket.AF_INET

    def setsockopt(self, *_: Any) -> None:
        """It has the options that it needs."""

    def recvmsg(self, size: int, *_: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, Any]:
        data = self.recv(DATAGRAM.size + MAX_DATAGRAM)
        if len(data) < DATAGRAM.size:
            raise BlockingIOError  # the broker is gone, which the channel shows
        remote, port, _, pid, local = DATAGRAM.unpack_from(data)
        source = ("127.0.0.1", local)
        self._peers.seen("udp", source, pid)
        return data[DATAGRAM.size :][:size], [_destination(remote, port)], 0, (*source, data[: DATAGRAM.size])

    def sendmsg(self, parts: Any, ancillary: Any = (), flags: int = 0, source: Any = None) -> int:
        return self.send(source[2] + b"".join(parts), flags | _socket.MSG_DONTWAIT)


def _destination(address: bytes, port: int) -> tuple[int, int, bytes]:
    """As the kernel tells the original destination: struct sockaddr_in or sockaddr_in6."""
    number = port.to_bytes(2, "big")
    if address.startswith(MAPPED):
        return _socket.IPPROTO_IP, IP_ORIGDSTADDR, b"\2\0" + number + address[12:] + bytes(8)
    return _socket.IPPROTO_IPV6, IPV6_ORIGDSTADDR, b"\x0a\0" + number + bytes(4) + address + bytes(4)
