"""The door for all other UDP: what arrives is recorded and dropped (QUIC falls back to TCP).

Rules kept here:

1. The first datagram to a destination is recorded at once, its repeats once a second with their count and bytes
   (`audit.folding`).
2. Nothing is ever sent from here.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, IPPROTO_IP, IPPROTO_IPV6, inet_ntop

from netsandbox.audit.folding import Folding
from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Callable

    from netsandbox.runtime.loop import Loop

    # (destination, number of datagrams, their bytes together)
    RecordDatagrams = Callable[[tuple[str, int], int, int], object]

BATCH = 128
_IP_ORIGDSTADDR, _IPV6_ORIGDSTADDR = 20, 74  # linux/in.h, linux/in6.h; the same number switches it on


class UdpRecorder:
    """Drains *sock*, which it owns from now on."""

    def __init__(self, loop: Loop, sock: Socket, record: RecordDatagrams) -> None:
        sock.settimeout(0)
        sock.setsockopt(IPPROTO_IP, _IP_ORIGDSTADDR, 1)
        if sock.family == AF_INET6:
            sock.setsockopt(IPPROTO_IPV6, _IPV6_ORIGDSTADDR, 1)
        self._loop = loop
        self._sock = sock
        self._folding = Folding(record, call_later=loop.call_later)
        self._fd = sock.fileno()
        loop.watch(self._fd, IN, self._ready)

    def flush(self) -> None:
        """Write the counts that are in no record yet."""
        self._folding.flush()

    def close(self) -> None:
        if self._fd >= 0:
            self.flush()
            self._loop.unwatch(self._fd)
            self._fd = -1
            self._sock.close()

    def _ready(self, _events: int) -> None:
        for _ in range(BATCH):
            try:
                # The largest datagram there is, since the record has its size.
                data, ancillary, _flags, _source = self._sock.recvmsg(65535, 128)
            except BlockingIOError:
                return
            except OSError:
                continue
            self._folding.count(_destination(ancillary), 1, len(data))


def _destination(ancillary: list[tuple[int, int, bytes]]) -> tuple[str, int]:
    """Where the client wanted to go, before the kernel turned the datagram to us."""
    for level, kind, data in ancillary:
        port = int.from_bytes(data[2:4], "big")
        if level == IPPROTO_IP and kind == _IP_ORIGDSTADDR and len(data) >= 8:
            return inet_ntop(AF_INET, data[4:8]), port
        if level == IPPROTO_IPV6 and kind == _IPV6_ORIGDSTADDR and len(data) >= 24:
            return inet_ntop(AF_INET6, data[8:24]), port
    return "unknown", 0
