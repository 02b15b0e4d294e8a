"""The door for all other UDP: what arrives is recorded and dropped (QUIC falls back to TCP).

Rules kept here:

1. The first datagram to a destination is recorded at once, its repeats once a second with their count and bytes.
2. Nothing is ever sent from here.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, IPPROTO_IP, IPPROTO_IPV6, inet_ntop

from netsandbox.runtime.loop import IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket

    from netsandbox.runtime.loop import Loop
    from netsandbox_dns.contract import NoteUdp

BATCH = 128
DESTINATIONS_MAX = 1024
WINDOW = 1.0
_IP_ORIGDSTADDR, _IPV6_ORIGDSTADDR = 20, 74  # linux/in.h, linux/in6.h; the same number switches it on


class UdpRecorder:
    """Drains *sock*, which it owns from now on."""

    def __init__(self, loop: Loop, sock: Socket, note_udp: NoteUdp) -> None:
        sock.settimeout(0)
        sock.setsockopt(IPPROTO_IP, _IP_ORIGDSTADDR, 1)
        if sock.family == AF_INET6:
            sock.setsockopt(IPPROTO_IPV6, _IPV6_ORIGDSTADDR, 1)
        self._loop = loop
        self._sock = sock
        self._note = note_udp
        self._fd = sock.fileno()
        self._folded: dict[tuple[str, int], list[int]] = {}  # destination -> [datagrams, bytes] since last written
        self._armed = False
        loop.watch(self._fd, IN, self._ready)

    def close(self) -> None:
        if self._fd >= 0:
            self.flush()
            self._loop.unwatch(self._fd)
            self._fd = -1
            self._sock.close()

    def flush(self) -> None:
        """Write what was folded; destinations that were silent for a window are forgotten."""
        for destination, folded in list(self._folded.items()):
            count, length = folded
            if not count:
                del self._folded[destination]
                continue
            folded[:] = 0, 0
            self._note(*destination, length, count)

    def _ready(self, _events: int) -> None:
        for _ in range(BATCH):
            try:
                # The largest datagram there is: the record says how much was tried.
                data, ancillary, _flags, _source = self._sock.recvmsg(65535, 128)
            except BlockingIOError:
                return
            except OSError:
                continue
            self._record(_destination(ancillary), len(data))

    def _record(self, destination: tuple[str, int], length: int) -> None:
        folded = self._folded.get(destination)
        if folded is not None:
            folded[0] += 1
            folded[1] += length
            return
        if len(self._folded) >= DESTINATIONS_MAX:
            self.flush()
            self._folded.clear()
        self._folded[destination] = [0, 0]
        self._note(*destination, length, 1)
        self._arm()

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._loop.call_later(WINDOW, self._due)

    def _due(self) -> None:
        self._armed = False
        if self._fd < 0:
            return
        self.flush()
        if self._folded:
            self._arm()


def _destination(ancillary: list[tuple[int, int, bytes]]) -> tuple[str, int]:
    """Where the client wanted to go, before the kernel turned the datagram to us."""
    for level, kind, data in ancillary:
        port = int.from_bytes(data[2:4], "big")
        if level == IPPROTO_IP and kind == _IP_ORIGDSTADDR and len(data) >= 8:
            return inet_ntop(AF_INET, data[4:8]), port
        if level == IPPROTO_IPV6 and kind == _IPV6_ORIGDSTADDR and len(data) >= 24:
            return inet_ntop(AF_INET6, data[8:24]), port
    return "unknown", 0
